package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a schema's regular expressions. A unit is an instruction of the compiled
// expression, which takes some 200 bytes; \pL is a table of 1,300 numbers, so 53 units,
// and ^\pL{600} would be 32,000.
const (
	maxPattern  = 2_000      // bytes of one
	maxPatterns = 20_000     // units of all
	maxMatched  = 50_000_000 // units times bytes that one Check may match; half a second
)

// What a pattern costs before it is parsed. To fold the cases of all of Unicode takes 3 ms.
const (
	classCost = 50
	foldCost  = 500
)

// runesPerUnit is how many numbers of a character class take as much memory as an instruction.
const runesPerUnit = 25

// patterns compiles the regular expressions of one schema, each once, and counts what
// they take. It is used by one goroutine at a time.
type patterns struct {
	known   map[string]*pattern
	units   int
	matched int   // units times bytes
	refused error // why a pattern was too much, once one was
}

// pattern is a regular expression that counts what it is used for.
type pattern struct {
	*regexp.Regexp
	units int
	all   *patterns
}

// MatchString panics where the Check has matched as much as it may.
func (p *pattern) MatchString(s string) bool {
	if p.all.matched += p.units * (1 + len(s)); p.all.matched > maxMatched {
		panic(fmt.Sprintf("its regular expressions are too large for so long a config (instructions times bytes are more than %d)", maxMatched))
	}
	return p.Regexp.MatchString(s)
}

// compile is a jsonschema.RegexpEngine.
func (all *patterns) compile(text string) (jsonschema.Regexp, error) {
	if p := all.known[text]; p != nil || all.refused != nil {
		return p, all.refused // the library goes on after an error
	}
	units := parseCost(text)
	if len(text) > maxPattern || units > maxPatterns {
		units = maxPatterns + 1
	} else {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil, err
		}
		units += sizeOf(parsed)
	}
	if all.units += units; all.units > maxPatterns {
		all.refused = fmt.Errorf("regular expression %.60q, with those before it, comes to more than %d instructions; repeat fewer and smaller classes of characters", text, maxPatterns)
		return nil, all.refused
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{re, units, all}
	all.known[text] = p
	return p, nil
}

// foldsCase finds the flag i of an expression.
var foldsCase = regexp.MustCompile(`\(\?[a-zA-Z-]*i`)

// parseCost weighs the tables that it takes to parse an expression. Without regard to
// case, a range that reaches beyond ASCII is walked rune by rune.
func parseCost(text string) int {
	classes := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	if !foldsCase.MatchString(text) {
		return classes * classCost
	}
	beyond := strings.Count(text, `\x`)
	for _, r := range text {
		if r >= utf8.RuneSelf {
			beyond++
		}
	}
	return (classes + beyond) * foldCost
}

// sizeOf is how many instructions a parsed expression compiles to, or a few more. At
// most maxPatterns+1 are counted: repetitions multiply.
func sizeOf(re *syntax.Regexp) int {
	size := 2 + len(re.Rune)/runesPerUnit
	if re.Op == syntax.OpLiteral {
		size = 1 + len(re.Rune)
	}
	for _, sub := range re.Sub {
		size = min(size+sizeOf(sub), maxPatterns+1)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min+1, re.Max) // x{3,} is x three times and x*
	}
	return min(size, maxPatterns+1)
}
