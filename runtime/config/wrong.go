package config

import (
	"errors"
	"fmt"
)

// wrongError is what is wrong with the value of one setting.
type wrongError struct {
	key string
	err error
}

func (e *wrongError) Error() string { return e.key + ": " + e.err.Error() }
func (e *wrongError) Unwrap() error { return e.err }

func wrong(key, format string, args ...any) error {
	return &wrongError{key, fmt.Errorf(format, args...)}
}

// origins say where the value of a setting was written, by its key: a file, a variable, or
// a flag of another name than the key's. Of others nothing is to be said.
type origins map[string]string

// name puts in front of each of the joined errors where its value was written.
func (o origins) name(err error) error {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var named []error
	for _, err := range all.Unwrap() {
		var w *wrongError
		if errors.As(err, &w) && o[w.key] != "" {
			err = fmt.Errorf("%s: %w", o[w.key], err)
		}
		named = append(named, err)
	}
	return errors.Join(named...)
}
