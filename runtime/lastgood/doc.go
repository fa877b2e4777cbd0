// Package lastgood keeps what was good last in a directory that outlasts a reboot: the settings, and of each plugin the text
// of its JSON file, and a copy of its module.
package lastgood
