// Package lastgood keeps the last good version of each plugin in a directory that outlasts a reboot: the text
// of its JSON file, and a copy of its module.
package lastgood
