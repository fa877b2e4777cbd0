// Package plan decides how a revision of a plugin comes to the nodes. Next decides for the controller, and Choose for a node's
// agent. Both are pure functions: they read no clock and no disk, and ask no server.
package plan
