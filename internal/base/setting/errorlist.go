package setting

import (
	"errors"
	"fmt"
	"io/fs"

	"tutti/internal/core"
)

// ErrorList collects errors in the order of the file's keys.
type ErrorList struct{ found []error }

// Add adds an error of the key at path. where is the source of the value, "" for none.
func (f *ErrorList) Add(path, where, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	if where != "" {
		message += " (" + where + ")"
	}
	f.found = append(f.found, &core.Error{Code: core.CodeInvalid, Message: message, Hint: hint})
}

// Err joins the errors, nil when there are none.
func (f *ErrorList) Err() error { return errors.Join(f.found...) }

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

// Reason returns the text of a file error without the path, which is already in the message.
func Reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
