// Package codecache keeps compiled modules in a directory and has child
// processes compile what is missing.
//
// A compiler that is given a hostile module takes as much memory and time as it
// likes, and cannot be stopped. So it runs in a process of its own, which limits
// itself (Confine) before it reads the module, and which leaves its result in a
// directory that the caller loads from afterwards. The package knows neither
// the compiler nor the format of its result: the program that is started does.
//
// What is loaded from the cache is native code. The directory is therefore ours
// alone, and refused where anybody else could write to it.
package codecache
