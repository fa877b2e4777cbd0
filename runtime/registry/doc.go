// Package registry reads what plugins the operator wants: the files of the
// plugin directory and of Koordinator's hookserver.d become one list of
// descriptions, in the order of their ids, and the list is kept up to date.
//
// It says what is wanted and whether the files can be trusted and understood.
// It does not load a plugin, run one, or know what is in a module: that is for
// packages wasm and remote, and for who puts the list into effect.
package registry
