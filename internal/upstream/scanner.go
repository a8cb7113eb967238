package upstream

import (
	"errors"
	"fmt"
	"io"

	"tutti/internal/core"
)

const (
	firstBuffer = 64 << 10
	maxKept     = 1 << 20
	maxEmpty    = 100
)

// Shape says what a page looks like: an object with an array of objects among its members.
type Shape struct {
	// Array is the member that holds the records.
	Array string
	// Envelope names the other members of the page whose values are wanted.
	Envelope []string
	// Members names the top-level members of a record whose string values are wanted.
	Members []string
	// Notice names a top-level member of a record whose presence is wanted, empty for none.
	Notice string
	// Flag names a top-level member of a record whose boolean value is wanted, empty for none.
	Flag string
}

// Truth is the value of a record's member Shape.Flag.
type Truth uint8

// Values of Truth. TruthNone stands for a member that is missing or no boolean.
const (
	TruthNone Truth = iota
	TruthFalse
	TruthTrue
)

// truthOf returns the Truth of a JSON value by its first byte.
func truthOf(c byte) Truth {
	switch c {
	case 't':
		return TruthTrue
	case 'f':
		return TruthFalse
	default:
		return TruthNone
	}
}

// Item is one record.
type Item struct {
	// Body is the record's own bytes, without raw line breaks.
	Body []byte
	// Values are the texts of the record's members in the order of Shape.Members, nil where the record has no such
	// member or its value is no string. As in encoding/json, the last of several members of one name counts.
	Values [][]byte
	// Noticed reports whether the record has the member Shape.Notice.
	Noticed bool
	// Flag is the value of the record's member Shape.Flag.
	Flag Truth
	// TooLarge is set for a record over the limit, which was read to its end but not held: Body is nil, and Noticed false.
	TooLarge *core.KeptDocument
}

// Envelope is what a page said beside its records.
type Envelope struct {
	// Rows is the number of records.
	Rows int
	// Values are the raw JSON values of the page's members in the order of Shape.Envelope, nil for a missing one.
	Values [][]byte
}

// Scanner reads pages of one Shape. Its buffer slides over the page and grows to the largest record, so memory does
// not grow with a page or a study. It can be used again and again, by one goroutine at a time.
type Scanner struct {
	shape Shape
	// maxRecord is the size of the largest record, maxOther that of other values of the page.
	maxRecord, maxOther int

	r        io.Reader
	buf      []byte
	pos, end int // buf[pos:end] is read and not yet used up
	eof      bool
	// sized: the buffer was made for all that is to come.
	sized   bool
	values  [][]byte
	spans   []span
	noticed bool
	flag    Truth
}

// span is a string value: buf[start:end] with its quotes; end is 0 for none.
type span struct {
	start, end int
	escaped    bool
}

// NewScanner makes a Scanner of records up to maxRecord bytes; 0 means core.DefaultMaxRecordBytes.
func NewScanner(shape Shape, maxRecord int) *Scanner {
	if maxRecord <= 0 {
		maxRecord = core.DefaultMaxRecordBytes
	}
	return &Scanner{
		shape: shape, maxRecord: maxRecord, maxOther: max(maxRecord, maxKept),
		values: make([][]byte, len(shape.Members)), spans: make([]span, len(shape.Members)),
	}
}

// Page reads one page to the end of r and calls each for every record in order; the Item is valid only until each
// returns. An error of each ends the page and is returned as it is. So is one of r that is a *core.Error; others are
// CodeUnavailable, as is everything that is not exactly one page: cut short (ErrCut), not JSON (ErrMalformed), without
// the array (ErrShape). A record over the limit is passed as an Item that says so; another value over it is CodeUpstream
// (ErrTooLarge).
func (s *Scanner) Page(r io.Reader, each func(Item) error) (Envelope, error) {
	s.reset(r)
	defer s.release()
	page := Envelope{Rows: -1, Values: make([][]byte, len(s.shape.Envelope))}
	c, err := s.next()
	if err != nil {
		return page, err
	}
	if c != '{' {
		return page, s.notPage(c)
	}
	s.pos++
	for first := true; ; first = false {
		more, err := s.member(&page, first, each)
		if err != nil {
			return page, err
		}
		if !more {
			break
		}
	}
	if page.Rows < 0 {
		return page, Malformed("the upstream's answer is no page", ErrShape)
	}
	return page, s.finish()
}

// Record reads one record, the whole of r; sizeHint is its size in bytes where known, else -1. The Item's Body is the
// caller's to keep, its Values are valid until the Scanner is used again. Errors are those of Page.
func (s *Scanner) Record(r io.Reader, sizeHint int64) (Item, error) {
	s.reset(r)
	defer s.release()
	kept := s.buf
	size := int(min(max(sizeHint+1, 4<<10), max(int64(s.maxRecord)+1, maxKept)))
	if err := s.hold(size); err != nil {
		return Item{}, err
	}
	s.buf, s.sized = make([]byte, size), true
	defer func() { s.buf = kept }()
	c, err := s.next()
	if err != nil {
		return Item{}, err
	}
	if c != '{' {
		return Item{}, s.notPage(c)
	}
	item, err := s.record()
	if err != nil {
		return Item{}, err
	}
	s.values = make([][]byte, len(s.shape.Members))
	// What follows may slide the buffer, so the record leaves it: finish reads into a buffer of its own.
	rest := append([]byte(nil), s.buf[s.pos:s.end]...)
	s.buf, s.pos, s.end = append(rest, make([]byte, 64)...), 0, len(rest)
	return item, s.finish()
}

func (s *Scanner) reset(r io.Reader) {
	s.r, s.pos, s.end, s.eof, s.sized = r, 0, 0, false, false
	if s.buf == nil {
		s.buf = make([]byte, firstBuffer)
	}
}

// release lets go of the reader, and of a buffer that one large record has blown up.
func (s *Scanner) release() {
	s.r = nil
	if len(s.buf) > maxKept {
		s.buf = nil
	}
}

// member reads one member of the page and what separates it from the next; more is false behind the closing brace.
func (s *Scanner) member(page *Envelope, first bool, each func(Item) error) (more bool, err error) {
	c, err := s.next()
	if err != nil {
		return false, err
	}
	if c == '}' && first {
		s.pos++
		return false, nil
	}
	var k key
	from, err := s.token(s.maxOther, func(buf []byte, i int) int {
		i, k = scanKey(buf, i)
		return i
	})
	if err != nil {
		return false, err
	}
	// The key's indices are relative to the token's start, since the buffer may have moved.
	k.start, k.end = k.start+from, k.end+from
	if err := s.memberValue(page, k, each); err != nil {
		return false, err
	}
	return s.separator('}')
}

// memberValue reads the value of member k: the records, a wanted value, or one to skip.
func (s *Scanner) memberValue(page *Envelope, k key, each func(Item) error) error {
	if k.is(s.buf, s.shape.Array) {
		if page.Rows >= 0 {
			return Malformed("the upstream's page lists its records twice", ErrShape)
		}
		page.Rows = 0
		return s.array(page, each)
	}
	wanted := -1
	for n, name := range s.shape.Envelope {
		if k.is(s.buf, name) {
			wanted = n
		}
	}
	if _, err := s.next(); err != nil {
		return err
	}
	from, err := s.token(s.maxOther, func(buf []byte, i int) int { return scanValue(buf, i, 1) })
	if err != nil {
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
		return Malformed("the upstream's page has no list of records", ErrShape)
	}
	s.pos++
	for {
		if c, err = s.next(); err != nil {
			return err
		}
		if c == ']' && page.Rows == 0 {
			s.pos++
			return nil
		}
		if c != '{' {
			return Malformed("the upstream's page lists something that is no record", ErrShape)
		}
		item, err := s.record()
		if err != nil {
			return err
		}
		page.Rows++
		if err := each(item); err != nil {
			return err
		}
		if err := s.shrink(); err != nil {
			return err
		}
		if more, err := s.separator(']'); err != nil || !more {
			return err
		}
	}
}

// separator reads a comma, or the closing byte: then more is false.
func (s *Scanner) separator(closing byte) (more bool, err error) {
	c, err := s.next()
	if err != nil {
		return false, err
	}
	s.pos++
	switch c {
	case ',':
		return true, nil
	case closing:
		return false, nil
	default:
		return false, Malformed("the upstream's answer is not JSON", ErrMalformed)
	}
}

// record reads the object at pos.
func (s *Scanner) record() (Item, error) {
	from, err := s.token(s.maxRecord, s.scanRecord)
	if errors.Is(err, ErrTooLarge) {
		return s.oversize()
	}
	if err != nil {
		return Item{}, err
	}
	for n, sp := range s.spans {
		switch {
		case sp.end == 0:
			s.values[n] = nil
		case sp.escaped:
			s.values[n] = unescape(s.buf[from+sp.start : from+sp.end])
		default:
			s.values[n] = s.buf[from+sp.start+1 : from+sp.end-1]
		}
	}
	return Item{Body: s.buf[from:s.pos:s.pos], Values: s.values, Noticed: s.noticed, Flag: s.flag}, nil
}

// scanRecord is scanObject that notes the wanted members, in the same pass. i is the index of the opening brace.
func (s *Scanner) scanRecord(buf []byte, i int) int {
	clear(s.spans)
	s.noticed, s.flag = false, TruthNone
	i++
	for first := true; ; first = false {
		if i = skipSpace(buf, i); i >= len(buf) {
			return short
		}
		if buf[i] == '}' && first {
			return i + 1
		}
		var k key
		if i, k = scanKey(buf, i); i < 0 {
			return i
		}
		if i = s.scanMember(buf, i, k); i < 0 {
			return i
		}
		if i = skipSpace(buf, i); i >= len(buf) {
			return short
		}
		switch buf[i] {
		case ',':
			i++
		case '}':
			return i + 1
		default:
			return broken
		}
	}
}

// scanMember reads the value of a record's member k, and notes where it is if it is wanted and a string.
func (s *Scanner) scanMember(buf []byte, i int, k key) int {
	if i = skipSpace(buf, i); i >= len(buf) {
		return short
	}
	wanted := -1
	for n, name := range s.shape.Members {
		if k.is(buf, name) {
			wanted = n
		}
	}
	if wanted < 0 {
		s.noticed = s.noticed || k.is(buf, s.shape.Notice)
		if s.shape.Flag != "" && k.is(buf, s.shape.Flag) {
			s.flag = truthOf(buf[i])
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

// token applies scan at pos, reading on until the token is whole, and moves pos behind it. It returns the index of the
// token's first byte. scan sees the token at index 0. Before scanning once more it waits for as many bytes again as it
// has, so that a record of any size is scanned only a few times. A token over limit bytes is ErrTooLarge, and pos stays at
// its start.
func (s *Scanner) token(limit int, scan func(buf []byte, i int) int) (from int, err error) {
	for {
		switch n := scan(s.buf[s.pos:s.end], 0); n {
		case short:
			held := s.end - s.pos
			if held > limit {
				return 0, tooLarge(limit)
			}
			if err := s.fill(min(held, limit-held+1)); err != nil {
				return 0, err
			}
		case broken:
			return 0, Malformed("the upstream's answer is not JSON", ErrMalformed)
		case deep:
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

// next returns the first byte from pos on that is no white space, and moves pos to it.
func (s *Scanner) next() (byte, error) {
	for {
		s.pos = skipSpace(s.buf[:s.end], s.pos)
		if s.pos < s.end {
			return s.buf[s.pos], nil
		}
		if err := s.fill(1); err != nil {
			return 0, err
		}
	}
}

// finish reads to the end of r, where only white space may follow.
func (s *Scanner) finish() error {
	_, err := s.next()
	switch {
	case err == nil:
		return Malformed("the upstream's answer goes on behind its end", ErrMalformed)
	case errors.Is(err, ErrCut) && s.eof:
		return nil
	default:
		return err
	}
}

// fill reads want bytes or more, fewer only at the end of r. At the end, where nothing is left to read, it is ErrCut.
func (s *Scanner) fill(want int) error {
	if s.eof {
		return Malformed("the upstream's answer was cut short", ErrCut)
	}
	if free := len(s.buf) - s.end; s.sized && free > 0 {
		want = min(want, free)
	}
	want = max(want, 1)
	if err := s.room(want); err != nil {
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
			if empty++; empty > maxEmpty {
				return readError(io.ErrNoProgress)
			}
		}
	}
	return nil
}

// room makes space for want more bytes: first by sliding, then by growing.
func (s *Scanner) room(want int) error {
	held := s.end - s.pos
	if len(s.buf)-s.end >= want {
		return nil
	}
	into := s.buf
	if held+want > len(s.buf) {
		size := max(held+want, min(2*len(s.buf), max(s.maxRecord, s.maxOther)+1))
		if err := s.hold(size); err != nil {
			return err
		}
		into = make([]byte, size)
	}
	copy(into, s.buf[s.pos:s.end])
	s.buf, s.pos, s.end = into, 0, held
	return nil
}

// holder is a reader that bounds the memory of what is read from it.
type holder interface {
	// Hold takes n bytes of memory in the place of what it took before, and waits until they are free.
	Hold(n int64) error
}

// hold takes the memory of a buffer of some size, none for one of the size that every Scanner has.
func (s *Scanner) hold(size int) error {
	if size <= firstBuffer {
		size = 0
	}
	if r, ok := s.r.(holder); ok {
		return r.Hold(int64(size))
	}
	return nil
}

// shrink drops a buffer that a large record has blown up, once what is left in it is small.
func (s *Scanner) shrink() error {
	held := s.end - s.pos
	if len(s.buf) <= maxKept || held > firstBuffer {
		return nil
	}
	small := make([]byte, firstBuffer)
	copy(small, s.buf[s.pos:s.end])
	s.buf, s.pos, s.end = small, 0, held
	return s.hold(0)
}

func tooLarge(limit int) error {
	return core.WrapError(core.CodeUpstream, fmt.Sprintf("the upstream's answer holds a value of more than %d bytes", limit), ErrTooLarge)
}

func tooDeep() error {
	return core.WrapError(core.CodeUpstream, "the upstream's answer is nested too deeply", ErrMalformed)
}

// readError keeps an error that is classified already.
func readError(err error) error {
	if _, classified := errors.AsType[*core.Error](err); classified {
		return err
	}
	return core.WrapError(core.CodeUnavailable, "the upstream's answer was cut short", errors.Join(ErrCut, err))
}

// notPage is the error of an answer that begins with c.
func (s *Scanner) notPage(c byte) error {
	if c == '[' || c == '"' {
		return Malformed("the upstream's answer is of a wrong shape", ErrShape)
	}
	return Malformed("the upstream's answer is not JSON", ErrMalformed)
}
