// Package service is the proxy's side of systemd: the socket that systemd passes to it, and
// the messages that it sends to systemd (sd_notify). Without systemd it does nothing.
//
// It takes the state of the proxy from events. It decides nothing and knows no plugin.
package service
