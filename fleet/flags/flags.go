// Package flags has the flags that the fleet's programs share. It reads nothing.
package flags

import (
	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
)

// Registry adds how to reach registries.
func Registry(cmd *cobra.Command, c *oci.Client) {
	cmd.Flags().StringVar(&c.Credentials, "registry-config", "", "file with credentials for registries, in the format of Docker's config.json")
	cmd.Flags().StringSliceVar(&c.PlainHTTP, "plain-http", nil, "registries that are reached without TLS, as references name them")
}

// Mirrors adds the mirrors of registries.
func Mirrors(cmd *cobra.Command, c *oci.Client) {
	cmd.Flags().StringVar(&c.Mirrors, "mirrors", "", "file with the URLs of mirrors, by registry, which are asked before it; it may be missing")
}

// Trust adds the node's trust file.
func Trust(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "trust", "/etc/wasmproxy/trust.yaml", "trust file of the node: by whom artifacts must be signed")
}
