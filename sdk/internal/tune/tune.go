// Package tune holds what benchmarks of package sdk vary, and nothing else may.
package tune

// ViewAfter is how many reads of one object package sdk makes one by one, before
// it fetches the object's view. RATIONALE.md of package sdk says why it is this.
var ViewAfter = 7
