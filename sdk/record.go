package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Mount is a directory or file of the host that a container sees.
type Mount struct {
	ContainerPath     string
	HostPath          string
	Readonly          bool
	Propagation       string // private, which is the default, host_to_container or bidirectional
	SELinuxRelabel    bool
	RecursiveReadOnly bool
}

func (m *Mount) members() []member {
	return []member{
		{"container_path", &m.ContainerPath, nil}, {"host_path", &m.HostPath, nil}, {"readonly", nil, &m.Readonly},
		{"propagation", &m.Propagation, nil}, {"selinux_relabel", nil, &m.SELinuxRelabel}, {"recursive_read_only", nil, &m.RecursiveReadOnly},
	}
}

// Device is a device of the host that a container may use.
type Device struct {
	ContainerPath string
	HostPath      string
	Permissions   string // of r, w and m (mknod)
}

func (d *Device) members() []member {
	return []member{{"container_path", &d.ContainerPath, nil}, {"host_path", &d.HostPath, nil}, {"permissions", &d.Permissions, nil}}
}

// member is a key of a record, and the place of its value: a text, or whether it is "true".
type member struct {
	key  string
	text *string
	flag *bool
}

// encode returns the record that is an element of a set. What is empty is left out.
func encode(members []member) string {
	entries, count := []byte{0, 0, 0, 0}, byte(0)
	for _, m := range members {
		value := ""
		if m.text != nil {
			value = *m.text
		} else if *m.flag {
			value = "true"
		}
		if value != "" {
			entries = abi.AppendText(abi.AppendText(entries, m.key), value)
			count++
		}
	}
	entries[0] = count
	return string(entries)
}

// readRecords returns the elements of a set of records.
func readRecords[T any, P interface {
	*T
	members() []member
}](op string, o abi.Object, f abi.Field) []T {
	elements := readList(op, o, f)
	list := make([]T, len(elements))
	for i, element := range elements {
		members := P(&list[i]).members()
		abi.EachEntry(element, func(key, value string) bool {
			for _, m := range members {
				if m.key == key && m.text != nil {
					*m.text = value
				} else if m.key == key {
					*m.flag = value == "true"
				}
			}
			return true
		})
	}
	return list
}
