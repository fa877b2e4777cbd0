package main

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// TestNative plays to the source what the tests of the folder above play to the
// committed plugin.
func TestNative(t *testing.T) { sdktest.Run(t, "testdata/image-policy.json") }
