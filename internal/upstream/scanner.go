package upstream

import (
	"errors"
	"fmt"
	"io"

	"tutti/internal/core"
	"tutti/internal/jsontext"
)

const (
	initialBuffer = 64 << 10
	maxIdleBuffer = 1 << 20
	maxEmptyReads = 100
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
	// maxRecord bounds a record, maxOther any other value of the page, in bytes.
	maxRecord, maxOther int

	r        io.Reader
	buf      []byte
	pos, end int // buf[pos:end] is read and not yet consumed
	eof      bool
	// sized is set when the buffer was allocated for the whole input.
	sized     bool
	values    [][]byte
	spans     []span
	detected  bool
	boolValue OptionalBool
	// skipped is the excerpt of the record that is being skipped, nil for none; it has what was consumed up to skippedFrom.
	skipped     *core.DeadLetterDocumentBuilder
	skippedFrom int
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
		format: shape, maxRecord: maxRecord, maxOther: max(maxRecord, maxIdleBuffer),
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

func (s *Scanner) reset(r io.Reader) {
	s.r, s.pos, s.end, s.eof, s.sized = r, 0, 0, false, false
	if s.buf == nil {
		s.buf = make([]byte, initialBuffer)
	}
}

// release drops the reader, and a buffer that grew for a large record.
func (s *Scanner) release() {
	s.r = nil
	if len(s.buf) > maxIdleBuffer {
		s.buf = nil
	}
}

// list reads the object or array at pos; element reads each member or element, whose first byte is at pos.
func (s *Scanner) list(closing byte, element func() error) error {
	s.pos++
	for first := true; ; first = false {
		c, err := s.next()
		if err != nil {
			return err
		}
		if c == closing && first {
			s.pos++
			return nil
		}
		if err := element(); err != nil {
			return err
		}
		if c, err = s.next(); err != nil {
			return err
		}
		s.pos++
		switch c {
		case ',':
		case closing:
			return nil
		default:
			return notJSON()
		}
	}
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
	if from, err = s.token(s.maxOther, func(buf []byte, i int) int { return scanValue(buf, i, 1) }); err != nil {
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
	return Item{Body: s.buf[from:s.pos:s.pos], Values: s.values, Detected: s.detected, Bool: s.boolValue}, nil
}

// scanRecord parses the object at i and locates the requested members.
func (s *Scanner) scanRecord(buf []byte, i int) int {
	clear(s.spans)
	s.detected, s.boolValue = false, BoolMissing
	return scanContainer(buf, i, 1, s)
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
		return scanValue(buf, i, 1)
	}
	if buf[i] != '"' {
		s.spans[wanted] = span{}
		return scanValue(buf, i, 1)
	}
	end, escaped := scanString(buf, i)
	s.spans[wanted] = span{start: i, end: end, escaped: escaped}
	return end
}

// token applies scan at pos, reading until the token is complete, and moves pos after it. It returns the index of the token's first
// byte. scan sees the token at index 0. Before it scans again, token reads as many bytes again as it has, so that a record of any
// size is scanned only a few times. A token over limit bytes is ErrTooLarge, and pos stays at its start.
func (s *Scanner) token(limit int, scan func(buf []byte, i int) int) (from int, err error) {
	for {
		switch n := scan(s.buf[s.pos:s.end], 0); n {
		case incomplete:
			held := s.end - s.pos
			if held > limit {
				return 0, tooLarge(limit)
			}
			if err := s.fill(min(held, limit-held+1)); err != nil {
				return 0, err
			}
		case invalid:
			return 0, notJSON()
		case tooNested:
			return 0, tooDeep()
		default:
			if n > limit {
				return 0, tooLarge(limit)
			}
			from, s.pos = s.pos, s.pos+n
			return from, nil
		}
	}
}

// next returns the first non-space byte from pos on, and moves pos to it.
func (s *Scanner) next() (byte, error) {
	for {
		s.pos = skipSpace(s.buf[:s.end], s.pos)
		if s.pos < s.end {
			return s.buf[s.pos], nil
		}
		if err := s.refill(); err != nil {
			return 0, err
		}
	}
}

// refill reads more after everything in the buffer was consumed. A record that is skipped does not need the buffer that grew for it.
func (s *Scanner) refill() error {
	if s.skipped != nil {
		if err := s.shrink(); err != nil {
			return err
		}
	}
	return s.fill(1)
}

// finish reads to the end of r, where only white space is allowed.
func (s *Scanner) finish() error {
	_, err := s.next()
	switch {
	case err == nil:
		return Malformed("the upstream's answer continues after its end", ErrMalformed)
	case errors.Is(err, ErrTruncated) && s.eof:
		return nil
	default:
		return err
	}
}

// fill reads at least want bytes, fewer only at the end of r. When nothing is left to read it returns ErrTruncated.
func (s *Scanner) fill(want int) error {
	if s.eof {
		return Malformed(messageCut, ErrTruncated)
	}
	if free := len(s.buf) - s.end; s.sized && free > 0 {
		want = min(want, free)
	}
	want = max(want, 1)
	if err := s.grow(want); err != nil {
		return err
	}
	empty := 0
	for got := 0; got < want; {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		got += n
		switch {
		case err == io.EOF:
			s.eof = true
			return nil
		case err != nil:
			return readError(err)
		case n > 0:
			empty = 0
		default:
			if empty++; empty > maxEmptyReads {
				return readError(io.ErrNoProgress)
			}
		}
	}
	return nil
}

// grow makes space for want more bytes: first by sliding, then by growing the buffer.
func (s *Scanner) grow(want int) error {
	held := s.end - s.pos
	if len(s.buf)-s.end >= want {
		return nil
	}
	into := s.buf
	if held+want > len(s.buf) {
		size := max(held+want, min(2*len(s.buf), max(s.maxRecord, s.maxOther)+1))
		if err := s.reserve(size); err != nil {
			return err
		}
		into = make([]byte, size)
	}
	s.slide(into)
	return nil
}

// slide moves what is not yet consumed to the start of a buffer, which may be the current one.
func (s *Scanner) slide(into []byte) {
	s.noteSkipped()
	s.end = copy(into, s.buf[s.pos:s.end])
	s.buf, s.pos, s.skippedFrom = into, 0, 0
}

// memoryReserver is a reader that bounds the memory of its content.
type memoryReserver interface {
	// Reserve replaces the memory reserved before by n bytes, and waits until they are available.
	Reserve(n int64) error
}

// reserve reserves the memory of a buffer of a given size, none for the initial size.
func (s *Scanner) reserve(size int) error {
	if size <= initialBuffer {
		size = 0
	}
	if r, ok := s.r.(memoryReserver); ok {
		return r.Reserve(int64(size))
	}
	return nil
}

// shrink replaces a buffer that grew for a large record once little of it is in use.
func (s *Scanner) shrink() error {
	if len(s.buf) <= maxIdleBuffer || s.end-s.pos > initialBuffer {
		return nil
	}
	s.slide(make([]byte, initialBuffer))
	return s.reserve(0)
}

func tooLarge(limit int) error {
	return core.WrapError(core.CodeUpstream, fmt.Sprintf("the upstream's answer contains a value of more than %d bytes", limit), ErrTooLarge)
}

func notJSON() error { return Malformed("the upstream's answer is not JSON", ErrMalformed) }

func tooDeep() error {
	return core.WrapError(core.CodeUpstream, "the upstream's answer is nested too deeply", ErrMalformed)
}

// readError returns a classified error unchanged.
func readError(err error) error {
	if _, classified := errors.AsType[*core.Error](err); classified {
		return err
	}
	return core.WrapError(core.CodeUnavailable, messageCut, errors.Join(ErrTruncated, err))
}

// unexpectedStart returns the error of a response that starts with c.
func (s *Scanner) unexpectedStart(c byte) error {
	if c == '[' || c == '"' {
		return Malformed("the upstream's answer has an unexpected format", ErrFormat)
	}
	return notJSON()
}
