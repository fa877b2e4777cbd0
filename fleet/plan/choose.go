package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// ranks is how many ranks there are: they are below it.
const ranks = 1 << 32

// rank is a node's place in the order in which nodes get a revision. Each revision has another order, so that it is not always
// the same nodes that are first.
func rank(revision, node string) int64 {
	sum := sha256.Sum256([]byte(revision + "\n" + node))
	return int64(binary.BigEndian.Uint32(sum[:]))
}

// reached reports whether it is a node's turn to have the update.
func reached(u *v1alpha1.Update, node string) bool {
	return slices.Contains(u.Canaries, node) || rank(u.Revision, node) < u.Threshold
}

// Choice is what a node is to do about a plugin.
type Choice struct {
	Revision   string        // to have; v1alpha1.NoRevision: none; "": to keep what it has
	Probation  time.Duration // in which the node may go back from Revision by itself; 0: none
	MaxRefused *int          // percent of its calls that Revision may refuse in its probation; nil: that is not judged
	Shadow     string        // to call beside Revision; "": none
	Next       string        // to fetch and to try, and not to have yet; "": none
}

// Choose decides for a node. Without a status that says which revision nodes are to have, the node keeps what it has.
func Choose(status *v1alpha1.NodePluginStatus, node string) Choice {
	u := status.Update
	turn := u != nil && reached(u, node)
	if turn && u.Mode != v1alpha1.Shadow {
		return Choice{Revision: u.Revision, Probation: time.Duration(u.BakeSeconds) * time.Second, MaxRefused: percent(u.MaxRefused)}
	}
	var c Choice
	if status.Stable != nil {
		c.Revision = status.Stable.Revision
	}
	switch {
	case turn:
		c.Shadow = u.Revision
	case u != nil && u.Revision != v1alpha1.NoRevision:
		c.Next = u.Revision
	}
	return c
}

// Selects reports whether a node with these labels gets the plugin. The error is of a selector that the API server should not
// have let in.
func Selects(selector *metav1.LabelSelector, node map[string]string) (bool, error) {
	if selector == nil { // all nodes; metav1 takes it for none
		return true, nil
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err
	}
	return s.Matches(labels.Set(node)), nil
}

// percent is the number of a text such as 5%; nil of an empty one, and of one that the API server should not have let in.
func percent(text string) *int {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil {
		return nil
	}
	return &n
}
