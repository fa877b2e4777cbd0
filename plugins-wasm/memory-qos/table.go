package main

// flags is what ticks know of a container: these, and above them how often it has waited.
type flags uint8

const (
	raised  flags = 1 << iota // its memory.high is above the formula's
	looked                    // it was looked at, while the plugin's memory is new and has not all that are raised
	waiting                   // once
)

// maxWaits is how often a container waits at most for its turn: a tick has room for a quarter of those that it reads.
const maxWaits = portion/room - 1

func waited(times int) flags { return flags(times) * waiting }

func (f flags) waits() int { return int(f / waiting) }

// table has the flags of containers by id. A map would make the plugin larger by an eighth.
type table struct {
	ids   []string // "" is a free place; at least half are free
	flags []flags
	used  int
	some  bool // is raised
}

func (t *table) get(id string) flags {
	if t.used == 0 {
		return 0
	}
	return t.flags[t.place(id)]
}

// add adds to the flags of a container.
func (t *table) add(id string, f flags) {
	if 2*t.used >= len(t.ids) {
		old := *t
		places := max(2*len(old.ids), 64) // always a power of two
		*t = table{ids: make([]string, places), flags: make([]flags, places)}
		for i, id := range old.ids {
			if id != "" {
				t.add(id, old.flags[i])
			}
		}
	}
	at := t.place(id)
	if t.ids[at] == "" {
		t.ids[at] = id
		t.used++
	}
	t.flags[at] |= f
	t.some = t.some || f&raised != 0
}

// place returns where an id is, or else the free place for it. The hash is FNV-1a of the id's end: runtimes make ids at random.
func (t *table) place(id string) int {
	hash := uint32(2166136261)
	for i := max(len(id)-8, 0); i < len(id); i++ {
		hash = (hash ^ uint32(id[i])) * 16777619
	}
	last := len(t.ids) - 1
	at := int(hash) & last
	for t.ids[at] != "" && t.ids[at] != id {
		at = (at + 1) & last
	}
	return at
}
