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

// Sentinels in the Err of a *core.Error: what the Lyric server said in its own words.
var (
	// ErrRecordAbsent: the category has no record of the id, with CodeAbsent. Lyric says so in other words of a record
	// that another category has.
	ErrRecordAbsent = fmt.Errorf("lyric: no submitted data: %w", core.ErrRecordAbsent)
	// ErrNoCategory: the server has no such category, or the category has no dictionary, with CodeUpstream: it says
	// nothing of the records (CONTRACT section 1), so it is not CodeAbsent.
	ErrNoCategory = errors.New("lyric: no such category")

	// errOtherID: the record that came is not the one that was asked for.
	errOtherID = errors.New("lyric: record of another id")
)

// fault is Lyric's own error document. Others are alike, those of common web frameworks among them, so error and message
// are both held against the words of Lyric's releases from 0.1 on; an unknown message is nobody's.
type fault struct {
	answer  *upstream.StatusError
	Error   string `json:"error"`
	Message string `json:"message"`
}

// faultOf returns the error document of a status error; ok is false where there is none.
func faultOf(err error) (f fault, ok bool) {
	if !errors.As(err, &f.answer) {
		return f, false
	}
	return f, json.Unmarshal(f.answer.Body, &f) == nil
}

// noData: there is no such record, or the list has no rows there. The case of the words varies between Lyric's routes.
func (f fault) noData() bool {
	const words = "no submitted data found"
	return f.answer.Status == http.StatusNotFound && f.Error == "Not Found" &&
		len(f.Message) >= len(words) && strings.EqualFold(f.Message[:len(words)], words)
}

// otherCategory: the record belongs to another category.
func (f fault) otherCategory() bool {
	return f.answer.Status == http.StatusNotFound && f.Error == "Not Found" &&
		strings.HasPrefix(f.Message, "Invalid Category ID '") && strings.Contains(f.Message, "' for system ID '")
}

// noCategory: there is no such category, or it has no dictionary. The routes of the data and of the category itself say
// it in different words, and releases up to 0.8 with status 400 on the latter.
func (f fault) noCategory() bool {
	switch {
	case f.answer.Status == http.StatusNotFound && f.Error == "Not Found":
		return f.Message == "Invalid Category ID" ||
			strings.HasPrefix(f.Message, "Category '") && strings.HasSuffix(f.Message, "' not found")
	case f.answer.Status == http.StatusBadRequest && f.Error == "Bad Request":
		return f.Message == "Category not found"
	default:
		return false
	}
}

// noCompound: a record could not be made compound. An apostrophe in the value that joins two entities is enough.
func (f fault) noCompound() bool {
	return f.answer.Status == http.StatusInternalServerError &&
		f.Message == "An error occurred while converting records into compound view"
}

// saysNoData reports whether err is Lyric's own word for a list without rows.
func saysNoData(err error) bool {
	f, ok := faultOf(err)
	return ok && f.noData()
}

// ownWords replaces a status error by what its body says, where that is Lyric's own error document. Other errors pass.
func ownWords(err error) error {
	f, ok := faultOf(err)
	switch {
	case !ok:
		return err
	case f.noCategory():
		return &core.Error{
			Code: core.CodeUpstream, Message: "the upstream has no such category, or the category has no dictionary",
			Hint: "check the repository's lyric.categoryId", Err: errors.Join(ErrNoCategory, f.answer),
		}
	case f.noCompound():
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the upstream could not make the compound view of a record",
			Hint: "its log names the record", RetryAfter: core.RetryAfterOf(err), Err: f.answer,
		}
	default:
		return err
	}
}

// recordWords is ownWords for the answer to the question for one record.
func recordWords(err error) error {
	f, ok := faultOf(err)
	switch {
	case ok && f.noData():
		return core.WrapError(core.CodeAbsent, "the record does not exist upstream", errors.Join(ErrRecordAbsent, f.answer))
	case ok && f.otherCategory():
		return core.WrapError(core.CodeAbsent, "the record belongs to another category upstream", errors.Join(ErrRecordAbsent, f.answer))
	default:
		return ownWords(err)
	}
}

// wrongShape is the error of a whole answer that is not what Lyric sends.
func wrongShape(what string) error {
	return upstream.Malformed("the upstream's "+what+" is of a wrong shape", upstream.ErrShape)
}
