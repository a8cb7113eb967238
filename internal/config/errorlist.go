package config

import (
	"errors"
	"fmt"

	"tutti/internal/core"
)

// errorList collects errors in the order of the file's keys.
type errorList struct{ found []error }

// add adds an error of the key at path. where is the source of the value, "" for none.
func (f *errorList) add(path, where, hint, format string, args ...any) {
	f.addCode(core.CodeInvalid, path, where, hint, format, args...)
}

func (f *errorList) addCode(code core.Code, path, where, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	if where != "" {
		message += " (" + where + ")"
	}
	f.found = append(f.found, &core.Error{Code: code, Message: message, Hint: hint})
}

// err joins the errors, nil when there are none.
func (f *errorList) err() error { return errors.Join(f.found...) }

// Errors returns the single errors of an error of this package, each with its key's path in its Message.
func Errors(err error) []*core.Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*core.Error
		for _, e := range joined.Unwrap() {
			all = append(all, Errors(e)...)
		}
		return all
	}
	if e, ok := errors.AsType[*core.Error](err); ok {
		return []*core.Error{e}
	}
	return []*core.Error{core.WrapError(core.CodeInternal, "an internal error occurred", err)}
}
