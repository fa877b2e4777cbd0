// Package handover lets a process replace itself by another version of its program, while calls
// go on. The process that runs, the predecessor, starts the program that is now at its path, the
// successor, and gives it the socket for calls and a channel on which both talk:
//
//	predecessor                              successor
//	starts it                                reads settings, loads plugins
//	                                         prepared
//	holds calls with hooks, saves its state
//	yours                                    reads the state, makes plugins active
//	                                         serving
//	accepts no connection any more, and
//	lets calls in flight end
//	main                                     accepts connections
//	left, for each call that has ended late
//
// Until serving the predecessor can go on as if nothing had happened, and does so if the successor
// ends or is late. It decides nothing about the state: package daemon does. See RATIONALE.md.
package handover
