// Package schema holds a plugin's configuration against the JSON schema that its
// manifest has.
//
// The schema is a stranger's: it reads no file and no address, and one that would
// take long is refused (bound.go, pattern.go). What a schema means is the library's business.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// address is what the schema is called within the library. Nothing is there.
const address = "wp:config_schema"

// maxProblems is how many problems of a config are named.
const maxProblems = 8

// Schema is a JSON schema, of draft 2020-12 unless it says otherwise. It is for one Check.
type Schema struct {
	compiled *jsonschema.Schema
	weight   int
}

// Parse reads a schema.
func Parse(text string) (s *Schema, err error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if deeper(doc, maxDepth) {
		return nil, fmt.Errorf("it has more than %d objects and lists within one another", maxDepth)
	}
	b := bounder{root: doc, weights: map[string]int{}}
	weight, err := b.weigh(doc, true)
	if err != nil {
		return nil, err
	}
	if weight > maxWeight {
		return nil, fmt.Errorf("with all references in place it has more than %d parts", maxWeight)
	}
	defer recovered(&err)
	all := &patterns{known: map[string]*pattern{}}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.UseRegexpEngine(all.compile)
	if err := c.AddResource(address, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(address)
	if all.refused != nil {
		return nil, all.refused // the library quotes all of the expression before it says why
	}
	if err == nil {
		return &Schema{compiled, weight}, nil
	}
	var invalid *jsonschema.SchemaValidationError
	var why *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &why) {
		return nil, errors.New(summary(why))
	}
	return nil, err
}

// nowhere is where references to other documents lead.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document, which is not looked up", url)
}

// Check says what is wrong with a config, by key: "/limits/max: got string, want
// number". A config of no bytes counts as {}.
func (s *Schema) Check(config []byte) (err error) {
	if len(config) == 0 {
		config = []byte("{}")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err != nil {
		return fmt.Errorf("not JSON, which the plugin's schema is for: %w", err)
	}
	if work := s.weight * (values(doc) + len(config)/valueBytes); work > maxWork {
		return fmt.Errorf("it has %d values in %d bytes, too many for a schema of %d parts (%d multiplied, the limit is %d); shorten it, or the plugin's schema",
			values(doc), len(config), s.weight, work, maxWork)
	}
	if err := checkNumbers(doc, ""); err != nil {
		return err
	}
	defer recovered(&err)
	var invalid *jsonschema.ValidationError
	err = s.compiled.Validate(doc)
	if !errors.As(err, &invalid) {
		return err
	}
	return errors.New(summary(invalid))
}

// summary says what is wrong, in one line.
func summary(e *jsonschema.ValidationError) string {
	var problems []string
	more := 0
	eachLeaf(e, func(leaf *jsonschema.ValidationError) {
		if len(problems) == maxProblems {
			more++ // to write one may take as long as the schema is
			return
		}
		text := "/" + strings.Join(leaf.InstanceLocation, "/") + ": " + leaf.ErrorKind.LocalizedString(printer)
		if len(problems) == 0 || problems[len(problems)-1] != text {
			problems = append(problems, text)
		}
	})
	if more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(problems, "; ")
}

// eachLeaf shows the problems that have no cause but themselves.
func eachLeaf(e *jsonschema.ValidationError, show func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		show(e)
	}
	for _, cause := range e.Causes {
		eachLeaf(cause, show)
	}
}

var printer = message.NewPrinter(language.English)

// recovered turns a panic of the library, which a stranger's schema may find a way
// to, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the schema cannot be evaluated: %v", r)
	}
}
