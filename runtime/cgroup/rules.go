package cgroup

// Rules are those for values of one cgroup version, 1 or 2, where there is no
// kernel that would take them.
type Rules int

// Version returns the version.
func (r Rules) Version() int { return int(r) }

// Parse is that of [FS].
func (r Rules) Parse(file, value string) (string, error) {
	return (&FS{version: int(r)}).Parse(file, value)
}
