package backend

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestLargeListIsAsLargeAsKubeletTakes(t *testing.T) {
	list := LargeList()
	if size := proto.Size(list); size > 16<<20 || size < 16<<20-2048 {
		t.Errorf("the list has %d bytes, want just under 16 MiB", size)
	}
	if each := proto.Size(list) / len(list.Containers); each < 512 || each > 2048 {
		t.Errorf("a container has %d bytes, want about 1 KiB, as on a node", each)
	}
}
