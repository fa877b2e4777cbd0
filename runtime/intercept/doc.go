// Package intercept is where CRI and hooks meet: it turns a CRI message into an
// event, asks the chain, carries the changes into the message, and keeps the
// store and the cgroup files in step with what the backend answered.
//
// It is the only package that knows both vocabularies. What a plugin is, in
// which order plugins run and who owns a field is package plugin's; what is
// known of a pod is package pods'; how bytes travel is package proxy's.
package intercept
