package lyric

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Sentinels in the Err of a *core.Error: the Lyric server's error documents.
var (
	// ErrRecordAbsent: the category has no record with that id, with CodeAbsent. Lyric has a different message for a record of another
	// category.
	ErrRecordAbsent = fmt.Errorf("lyric: no submitted data: %w", core.ErrRecordAbsent)
	// ErrNoCategory: the server has no such category, or the category has no dictionary, with CodeUpstream. It is not CodeAbsent, since
	// it says nothing about the records (CONTRACT section 1).
	ErrNoCategory = errors.New("lyric: no such category")

	// errOtherID: the response contains another record than the requested one.
	errOtherID = errors.New("lyric: record of another id")
	// errNoRows: the page has no rows.
	errNoRows = errors.New("lyric: no rows")
)

// errorDocument is Lyric's error document. Those of common web frameworks are similar, so that error and message are both compared
// with the texts of Lyric's releases from 0.1 on; unknown messages are not interpreted.
type errorDocument struct {
	status  *upstream.StatusError
	Error   string `json:"error"`
	Message string `json:"message"`
}

// errorDocumentOf returns the error document of a status error; ok is false when there is none.
func errorDocumentOf(err error) (f errorDocument, ok bool) {
	if !errors.As(err, &f.status) {
		return f, false
	}
	return f, json.Unmarshal(f.status.Body, &f) == nil
}

// noData reports that the record does not exist or the page has no rows. The text's case varies between Lyric's routes.
func (f errorDocument) noData() bool {
	begins := func(words string) bool {
		return len(f.Message) >= len(words) && strings.EqualFold(f.Message[:len(words)], words)
	}
	return f.status.Status == http.StatusNotFound && f.Error == "Not Found" &&
		(begins("no submitted data found") || begins("no record found with systemid"))
}

// otherCategory reports that the record belongs to another category.
func (f errorDocument) otherCategory() bool {
	return f.status.Status == http.StatusNotFound && f.Error == "Not Found" &&
		strings.HasPrefix(f.Message, "Invalid Category ID '") && strings.Contains(f.Message, "' for system ID '")
}

// noCategory reports that the category does not exist or has no dictionary. The routes of the data and of the category have
// different messages, and releases up to 0.8 answer the latter with status 400.
func (f errorDocument) noCategory() bool {
	switch {
	case f.status.Status == http.StatusNotFound && f.Error == "Not Found":
		return f.Message == "Invalid Category ID" ||
			strings.HasPrefix(f.Message, "Category '") && strings.HasSuffix(f.Message, "' not found")
	case f.status.Status == http.StatusBadRequest && f.Error == "Bad Request":
		return f.Message == "Category not found"
	default:
		return false
	}
}

// noCompound reports that Lyric failed to build a compound view, for example because of an apostrophe in the value that joins two entities.
func (f errorDocument) noCompound() bool {
	return f.status.Status == http.StatusInternalServerError &&
		f.Message == "An error occurred while converting records into compound view"
}

// pageError is protocolError for requests for a page; errNoRows stands for Lyric's error for a page without rows.
func pageError(err error) error {
	if f, ok := errorDocumentOf(err); ok && f.noData() {
		return errNoRows
	}
	return protocolError(err)
}

// protocolError converts a status error whose body is Lyric's error document. Other errors are returned unchanged.
func protocolError(err error) error {
	f, ok := errorDocumentOf(err)
	switch {
	case !ok:
		return err
	case f.noCategory():
		return &core.Error{
			Code: core.CodeUpstream, Message: "the upstream has no such category, or the category has no dictionary",
			Hint: "check the repository's lyric.categoryId", Err: errors.Join(ErrNoCategory, f.status),
		}
	case f.noCompound():
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the upstream failed to build the compound view of a record",
			Hint: "Lyric's log names the record", RetryAfter: core.RetryAfterOf(err), Err: f.status,
		}
	default:
		return err
	}
}

// recordError is protocolError for requests for one record.
func recordError(err error) error {
	f, ok := errorDocumentOf(err)
	switch {
	case ok && f.noData():
		return core.WrapError(core.CodeAbsent, "the record does not exist upstream", errors.Join(ErrRecordAbsent, f.status))
	case ok && f.otherCategory():
		return core.WrapError(core.CodeAbsent, "the record belongs to another category upstream", errors.Join(ErrRecordAbsent, f.status))
	default:
		return protocolError(err)
	}
}
