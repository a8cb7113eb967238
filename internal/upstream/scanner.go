package upstream

import (
	"errors"
	"io"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// Format describes a page: an object with an array of objects among its members.
type Format struct {
	// Array is the member that holds the records.
	Array string
	// Envelope names the other members of the page whose values are returned.
	Envelope []string
	// Members names the top-level members of a record whose string values are returned.
	Members []string
	// DetectMember names a top-level member of a record whose presence is reported, empty for none.
	DetectMember string
	// BoolMember names a top-level member of a record whose boolean value is returned, empty for none.
	BoolMember string
}

// OptionalBool is the value of a record's member Format.BoolMember.
type OptionalBool uint8

// Values of OptionalBool. BoolMissing stands for a member that is missing or not a boolean.
const (
	BoolMissing OptionalBool = iota
	BoolFalse
	BoolTrue
)

// optionalBoolOf returns the OptionalBool of a JSON value by its first byte.
func optionalBoolOf(c byte) OptionalBool {
	switch c {
	case 't':
		return BoolTrue
	case 'f':
		return BoolFalse
	default:
		return BoolMissing
	}
}

// Item is one record.
type Item struct {
	// Body holds the record's bytes, without raw line breaks.
	Body []byte
	// Values are the values of the record's members in the order of Format.Members, nil for a missing member or one that is not a
	// string. As in encoding/json, the last of several members with the same name counts.
	Values [][]byte
	// Detected reports whether the record has the member Format.DetectMember.
	Detected bool
	// Bool is the value of the record's member Format.BoolMember.
	Bool OptionalBool
	// Plain and Shape are those of core.Record.
	Plain bool
	Shape uint64
	// TooLarge is set for a record over the limit, which was read to its end but not kept: Body is nil, and Detected false.
	TooLarge *core.DeadLetterDocument
}

// Envelope holds the members of a page other than its records.
type Envelope struct {
	// Rows is the number of records.
	Rows int
	// Values are the raw JSON values of the page's members in the order of Format.Envelope, nil for a missing one.
	Values [][]byte
}

// Scanner reads pages of one Format. Its buffer slides over the page and grows to the largest record, so that memory does not grow
// with a page or a study. It can be reused, by one goroutine at a time.
type Scanner struct {
	format Format
	// maxRecord bounds a record, in bytes.
	maxRecord int

	window
	values    [][]byte
	spans     []span
	detected  bool
	form      form   // of the record
	seed      uint64 // of its shape
	boolValue OptionalBool
}

// span locates a string value: buf[start:end] with its quotes; end is 0 for none.
type span struct {
	start, end int
	escaped    bool
}

// NewScanner returns a Scanner for records up to maxRecord bytes; 0 means core.DefaultMaxRecordBytes.
func NewScanner(shape Format, maxRecord int) *Scanner {
	if maxRecord <= 0 {
		maxRecord = core.DefaultMaxRecordBytes
	}
	return &Scanner{
		format: shape, maxRecord: maxRecord, window: window{maxOther: max(maxRecord, maxIdleBuffer)},
		values: make([][]byte, len(shape.Members)), spans: make([]span, len(shape.Members)),
	}
}

// Page reads one page to the end of r and calls each for every record in order; the Item is valid only until each returns. An error
// of each ends the page and is returned unchanged, as is an error of r that is a *core.Error. Other errors of r are
// CodeUnavailable, as is everything that is not exactly one page: truncated (ErrTruncated), not JSON (ErrMalformed), without the
// array (ErrFormat). A record over the limit is passed as an Item with TooLarge; another value over it is CodeUpstream
// (ErrTooLarge).
func (s *Scanner) Page(r io.Reader, each func(Item) error) (Envelope, error) {
	s.reset(r)
	defer s.release()
	page := Envelope{Rows: -1, Values: make([][]byte, len(s.format.Envelope))}
	c, err := s.next()
	if err != nil {
		return page, err
	}
	if c != '{' {
		return page, s.unexpectedStart(c)
	}
	if err := s.list('}', func() error { return s.member(&page, each) }); err != nil {
		return page, err
	}
	if page.Rows < 0 {
		return page, Malformed("the upstream's answer is not a page", ErrFormat)
	}
	return page, s.finish()
}

// Record reads one record, the whole of r; sizeHint is its size in bytes, -1 when unknown. The caller owns the Item's Body; its
// Values are valid until the Scanner is used again. Errors are those of Page.
func (s *Scanner) Record(r io.Reader, sizeHint int64) (Item, error) {
	s.reset(r)
	defer s.release()
	kept := s.buf
	size := int(min(max(sizeHint+1, 4<<10), max(int64(s.maxRecord)+1, maxIdleBuffer)))
	if err := s.reserve(size); err != nil {
		return Item{}, err
	}
	s.buf, s.sized = make([]byte, size), true
	defer func() { s.buf = kept }()
	c, err := s.next()
	if err != nil {
		return Item{}, err
	}
	if c != '{' {
		return Item{}, s.unexpectedStart(c)
	}
	item, err := s.record()
	if err != nil {
		return Item{}, err
	}
	s.values = make([][]byte, len(s.format.Members))
	// Reading on may slide the buffer, so the record leaves it: finish uses its own buffer.
	rest := append([]byte(nil), s.buf[s.pos:s.end]...)
	s.buf, s.pos, s.end = append(rest, make([]byte, 64)...), 0, len(rest)
	return item, s.finish()
}

// member reads one member of the page.
func (s *Scanner) member(page *Envelope, each func(Item) error) error {
	var k key
	from, err := s.token(s.maxOther, func(buf []byte, i int) int {
		i, k = scanKey(buf, i)
		return i
	})
	if err != nil {
		return err
	}
	// The key's indexes are relative to the token's start, since the buffer may have moved.
	k.start, k.end = k.start+from, k.end+from
	if k.is(s.buf, s.format.Array) {
		if page.Rows >= 0 {
			return Malformed("the upstream's page lists its records twice", ErrFormat)
		}
		page.Rows = 0
		return s.array(page, each)
	}
	wanted := -1
	for n, name := range s.format.Envelope {
		if k.is(s.buf, name) {
			wanted = n
		}
	}
	if _, err := s.next(); err != nil {
		return err
	}
	if from, err = s.token(s.maxOther, func(buf []byte, i int) int { return scanValue(buf, i, 1, nil) }); err != nil {
		return err
	}
	if wanted >= 0 {
		page.Values[wanted] = append([]byte(nil), s.buf[from:s.pos]...)
	}
	return nil
}

// array reads the records.
func (s *Scanner) array(page *Envelope, each func(Item) error) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '[' {
		return Malformed("the upstream's page has no list of records", ErrFormat)
	}
	return s.list(']', func() error {
		if s.buf[s.pos] != '{' {
			return Malformed("the upstream's page lists a value that is not a record", ErrFormat)
		}
		item, err := s.record()
		if err != nil {
			return err
		}
		page.Rows++
		if err := each(item); err != nil {
			return err
		}
		return s.shrink()
	})
}

// record reads the object at pos.
func (s *Scanner) record() (Item, error) {
	from, err := s.token(s.maxRecord, s.scanRecord)
	if errors.Is(err, ErrTooLarge) {
		return s.skipOversized()
	}
	if err != nil {
		return Item{}, err
	}
	for n, sp := range s.spans {
		switch {
		case sp.end == 0:
			s.values[n] = nil
		case sp.escaped:
			s.values[n] = jsontext.AppendUnescaped(nil, s.buf[from+sp.start+1:from+sp.end-1])
		default:
			s.values[n] = s.buf[from+sp.start+1 : from+sp.end-1]
		}
	}
	return Item{Body: s.buf[from:s.pos:s.pos], Values: s.values, Detected: s.detected, Bool: s.boolValue, Plain: !s.form.long, Shape: s.form.shape}, nil
}

// scanRecord parses the object at i and locates the requested members.
func (s *Scanner) scanRecord(buf []byte, i int) int {
	clear(s.spans)
	s.detected, s.boolValue, s.form = false, BoolMissing, form{shape: s.seed}
	return scanContainer(buf, i, 1, s, &s.form)
}

// scanMember parses the value of a record's member k, and records its position if it is requested and a string.
func (s *Scanner) scanMember(buf []byte, i int, k key) int {
	if i = skipSpace(buf, i); i >= len(buf) {
		return incomplete
	}
	wanted := -1
	for n, name := range s.format.Members {
		if k.is(buf, name) {
			wanted = n
		}
	}
	if wanted < 0 {
		s.detected = s.detected || k.is(buf, s.format.DetectMember)
		if s.format.BoolMember != "" && k.is(buf, s.format.BoolMember) {
			s.boolValue = optionalBoolOf(buf[i])
		}
		return scanValue(buf, i, 1, &s.form)
	}
	if buf[i] != '"' {
		s.spans[wanted] = span{}
		return scanValue(buf, i, 1, &s.form)
	}
	end, escaped := scanString(buf, i)
	if end > 0 {
		s.form.text(buf[i+1 : end-1])
	}
	s.spans[wanted] = span{start: i, end: end, escaped: escaped}
	return end
}

// unexpectedStart returns the error of a response that starts with c.
func (s *Scanner) unexpectedStart(c byte) error {
	if c == '[' || c == '"' {
		return Malformed("the upstream's answer has an unexpected format", ErrFormat)
	}
	return notJSON()
}
