package enforce

import "time"

// fightAfter is how many repairs in a row make a fight, if each comes within fightTime after
// the one before.
const (
	fightAfter = 5
	fightTime  = 10 * time.Minute
)

// Drift is what something else has done to a file that holds, or should hold, a value of a plugin.
type Drift struct {
	Repairs int    `json:"repairs,omitempty"` // how often it was overwritten and written again
	Found   string `json:"found,omitempty"`   // what it was overwritten with last
	Fight   bool   `json:"fight,omitempty"`   // it is overwritten again and again, and left alone
	Cause   string `json:"cause,omitempty"`   // the last call or reload before the fight; empty if there was none

	row      int // of repairs by scans, each soon after the one before
	repaired time.Time
}

// overwritten notes what the file was overwritten with, and reports whether that is once too often. A repair that failed
// or is under way was counted. One after a call or a reload does not count: the cause is known.
func (d *Drift) overwritten(found string, counted bool, why Why) (fight bool) {
	d.Found = found
	if counted {
		return false
	}
	if why == Scan {
		now := time.Now()
		if now.Sub(d.repaired) > fightTime {
			d.row = 0
		}
		d.repaired = now
		d.row++
		d.Fight = d.row > fightAfter
	}
	if !d.Fight {
		d.Repairs++
	}
	return d.Fight
}
