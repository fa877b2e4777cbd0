// Package intercept is where CRI and hooks meet: it turns a CRI message into an
// event, asks the chain, carries the changes into the message, and tells the
// store and package enforce what the backend answered.
//
// It is the only package that knows both vocabularies. What a plugin is, in
// which order plugins run and who owns a field is package plugin's; what is
// known of a pod is package pods'; that values hold is package enforce's; how
// bytes travel is package proxy's.
package intercept
