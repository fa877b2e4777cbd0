package image

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

// Registries are the hosts of the images' names. The runtime must be told to
// pull from the address of Serve instead.
var Registries = []string{"registry.k8s.io", "k8s.gcr.io", "gcr.io", "docker.io"}

// Serve makes all images and serves them over HTTP at a loopback address, under
// their names without the host, until ctx ends. The programs multicall and pause
// lie in bin.
func Serve(ctx context.Context, address, bin string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serving the images: %w", err)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect { // for TLS, which a runtime tries first if this is its proxy
			http.Error(w, "this registry has no TLS", http.StatusNotImplemented)
			return
		}
		images.ServeHTTP(w, r)
	})}
	context.AfterFunc(ctx, func() { server.Close() })
	go server.Serve(listener) // ends with Close
	return push(ctx, address, bin)
}

func push(ctx context.Context, address, bin string) error {
	p, err := newParts(bin)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for full, r := range catalogue(p) {
		group.Go(func() error {
			_, repository, _ := strings.Cut(full, "/")
			reference, err := name.ParseReference(address+"/"+repository, name.Insecure)
			if err != nil {
				return err
			}
			img, err := r.image()
			if err != nil {
				return fmt.Errorf("making the image %s: %w", full, err)
			}
			return remote.Write(reference, img, remote.WithContext(ctx))
		})
	}
	return group.Wait()
}
