package isolation

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// NodeAddress is the node's address inside (of TEST-NET-1): kubelet wants one.
const NodeAddress = "192.0.2.2"

// setUpNetwork brings up loopback and a device with the node's address and a
// default route that leads nowhere. No packet can leave.
func setUpNetwork() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bringing up the loopback device: %w", err)
	}
	node := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "node0"}} // any kind of device does; CNI needs bridges anyway
	if err := netlink.LinkAdd(node); err != nil {
		return fmt.Errorf("making a bridge (has the kernel the bridge device?): %w", err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(NodeAddress), Mask: net.CIDRMask(24, 32)}}
	if err := netlink.AddrAdd(node, address); err != nil {
		return fmt.Errorf("giving the node its address: %w", err)
	}
	if err := netlink.LinkSetUp(node); err != nil {
		return fmt.Errorf("bringing up the node's device: %w", err)
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: node.Index, Gw: net.ParseIP("192.0.2.1")}); err != nil {
		return fmt.Errorf("adding the default route: %w", err)
	}
	return nil
}
