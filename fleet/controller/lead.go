package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the name of the Lease of the controller that works.
const lease = "wasmproxy-fleet-controller"

// Lead calls run when no other controller leads, with a context that ends when this one does not lead any more. It returns then, or
// when ctx is done. identity is this process's, and no other one's. health learns whether this one leads and cannot renew its Lease.
func Lead(
	ctx context.Context, config *rest.Config, namespace, identity string, health *leaderelection.HealthzAdaptor, run func(context.Context),
) error {
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the Lease: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true, Name: lease, WatchDog: health,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: run, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}
