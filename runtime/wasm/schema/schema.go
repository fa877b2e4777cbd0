// Package schema holds a plugin's configuration against the JSON schema that its
// manifest has.
//
// The schema is a stranger's: it reads no file and no address, and one that would
// take long is refused (bound.go). What a schema means is the library's business.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// address is what the schema is called within the library. Nothing is there.
const address = "wp:config_schema"

// maxProblems is how many problems of a config are told.
const maxProblems = 8

// Schema is a JSON schema, of draft 2020-12 unless it says otherwise. It is safe
// for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Parse reads a schema.
func Parse(text string) (s *Schema, err error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if err := bound(doc); err != nil {
		return nil, err
	}
	defer recovered(&err)
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	if err := c.AddResource(address, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(address)
	if err != nil {
		return nil, oneLine(err)
	}
	return &Schema{compiled}, nil
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
	defer recovered(&err)
	var invalid *jsonschema.ValidationError
	err = s.compiled.Validate(doc)
	if !errors.As(err, &invalid) {
		return err
	}
	problems := slices.Compact(leaves(invalid, nil))
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more", len(problems)-maxProblems))
	}
	return errors.New(strings.Join(problems, "; "))
}

// leaves are the problems that have no cause but themselves.
func leaves(e *jsonschema.ValidationError, all []string) []string {
	if len(e.Causes) == 0 {
		return append(all, "/"+strings.Join(e.InstanceLocation, "/")+": "+e.ErrorKind.LocalizedString(printer))
	}
	for _, cause := range e.Causes {
		all = leaves(cause, all)
	}
	return all
}

var printer = message.NewPrinter(language.English)

// oneLine says what is wrong with a schema, by its place in it.
func oneLine(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var why *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &why) {
		return errors.New(strings.Join(leaves(why, nil), "; "))
	}
	return err
}

// recovered turns a panic of the library, which a stranger's schema may find a way
// to, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the schema cannot be evaluated: %v", r)
	}
}
