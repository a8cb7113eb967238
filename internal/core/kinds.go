package core

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// PathKinds says in how many records a path holds each JSON kind; a record with several kinds at a path counts for each of them.
type PathKinds struct {
	Objects, Numbers, Booleans, Texts int64
	// Lists is in how many of the parts that were added up, such as pages, an object is an element of an array: in at least so many records.
	// It is zero only if none is.
	Lists int64
	// Undated is in how many parts a text is not a date with year, month and day, NoDate in how many a field of dates does not take one.
	Undated, NoDate int64
}

// Add adds o to p.
func (p *PathKinds) Add(o PathKinds) {
	more := o.counts()
	for i, n := range p.counts() {
		*n += *more[i]
	}
}

// Less returns what is left of p at least without a number of records.
func (p PathKinds) Less(records int64) PathKinds {
	for _, n := range p.counts() {
		*n = max(0, *n-records)
	}
	return p
}

// OnlyDates reports whether there are only texts that a field of dates takes.
func (p PathKinds) OnlyDates() bool {
	return p.Texts > 0 && p.NoDate == 0 && p.Objects+p.Numbers+p.Booleans == 0
}

// ByPrecedence returns the counts of the kinds; of several with the highest count, the first one decides.
func (p PathKinds) ByPrecedence() [4]int64 {
	return [...]int64{p.Objects, p.Numbers, p.Booleans, p.Texts}
}

// counts returns the counts in the order of their flags.
func (p *PathKinds) counts() [7]*int64 {
	return [...]*int64{&p.Objects, &p.Numbers, &p.Booleans, &p.Texts, &p.Lists, &p.Undated, &p.NoDate}
}

// Kinds are the PathKinds of records by dotted path, encoded. Nil is that of no records.
type Kinds []byte

// MaxKindsBytes bounds the Kinds that are stored with a run.
const MaxKindsBytes = 256 << 10

// Encoding of Kinds: a version, the numbers of records and documents, and the paths in order, each without the part that it shares with the one
// before, with flags and the counts that are not zero. Kinds that do not fit have a version of their own, and nothing else. Those of version 1,
// which lack counts, are not whole.
const (
	kindsVersion  = 2
	kindsOverflow = 255
)

// OverflownKinds returns the Kinds of records that have too many paths to be counted.
func OverflownKinds() Kinds { return Kinds{kindsOverflow} }

// NewKinds returns the Kinds of a number of records with a number of documents, whose paths are sorted. They are OverflownKinds if they have
// more than most bytes.
func NewKinds(records, documents int64, paths iter.Seq2[string, PathKinds], most int) Kinds {
	k := binary.AppendUvarint(Kinds{kindsVersion}, uint64(max(0, records)))
	k = binary.AppendUvarint(k, uint64(max(0, documents)))
	before := ""
	for path, p := range paths {
		shared := 0
		for shared < min(len(before), len(path)) && before[shared] == path[shared] {
			shared++
		}
		k = binary.AppendUvarint(k, uint64(shared))
		k = binary.AppendUvarint(k, uint64(len(path)-shared))
		k = append(append(k, path[shared:]...), p.flags())
		for _, n := range p.counts() {
			if *n != 0 {
				k = binary.AppendUvarint(k, uint64(*n))
			}
		}
		if before = path; len(k) > most {
			return OverflownKinds()
		}
	}
	return k
}

func (p *PathKinds) flags() byte {
	flags := byte(0)
	for i, n := range p.counts() {
		if *n != 0 {
			flags |= 1 << i
		}
	}
	return flags
}

// Whole reports whether all paths of the records were counted.
func (k Kinds) Whole() bool { return len(k) == 0 || k[0] == kindsVersion }

// Records returns the number of records.
func (k Kinds) Records() int64 {
	r := kindsReader{rest: k}
	records, _ := r.head()
	return records
}

// Documents returns the number of documents of the records, which is lower if some have none.
func (k Kinds) Documents() int64 {
	r := kindsReader{rest: k}
	_, documents := r.head()
	return documents
}

// All returns the paths, sorted. It ends where the encoding is damaged.
func (k Kinds) All() iter.Seq2[string, PathKinds] {
	return func(yield func(string, PathKinds) bool) {
		r := kindsReader{rest: k}
		r.head()
		for r.next() {
			if !yield(string(r.path), r.kinds) {
				return
			}
		}
	}
}

// Add returns the Kinds of the records of k and of o. They are OverflownKinds if they have more than most bytes.
func (k Kinds) Add(o Kinds, most int) Kinds {
	switch {
	case !k.Whole() || !o.Whole():
		return OverflownKinds()
	case len(o) == 0:
		return k
	case len(k) == 0 && len(o) <= most:
		return o
	}
	return NewKinds(k.Records()+o.Records(), k.Documents()+o.Documents(), merged(k, o), most)
}

// merged returns the paths of two Kinds, with the sums of both.
func merged(a, b Kinds) iter.Seq2[string, PathKinds] {
	return func(yield func(string, PathKinds) bool) {
		left, right := kindsReader{rest: a}, kindsReader{rest: b}
		left.head()
		right.head()
		moreLeft, moreRight := left.next(), right.next()
		for moreLeft || moreRight {
			order := bytes.Compare(left.path, right.path)
			useLeft, useRight := moreLeft && (order <= 0 || !moreRight), moreRight && (order >= 0 || !moreLeft)
			path, sum := left.path, PathKinds{}
			if useLeft {
				sum.Add(left.kinds)
			} else {
				path = right.path
			}
			if useRight {
				sum.Add(right.kinds)
			}
			if !yield(string(path), sum) {
				return
			}
			if useLeft {
				moreLeft = left.next()
			}
			if useRight {
				moreRight = right.next()
			}
		}
	}
}

// kindsReader reads encoded Kinds.
type kindsReader struct {
	rest  []byte
	path  []byte
	kinds PathKinds
}

func (r *kindsReader) number() (n int64, ok bool) {
	v, size := binary.Uvarint(r.rest)
	if size <= 0 || int64(v) < 0 {
		r.rest = nil
		return 0, false
	}
	r.rest = r.rest[size:]
	return int64(v), true
}

// head reads what precedes the paths, and returns the numbers of records and of documents.
func (r *kindsReader) head() (records, documents int64) {
	if len(r.rest) == 0 || r.rest[0] != kindsVersion {
		r.rest = nil
		return 0, 0
	}
	r.rest = r.rest[1:]
	records, _ = r.number()
	documents, _ = r.number()
	return records, documents
}

// next reads a path; false at the end.
func (r *kindsReader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	shared, _ := r.number()
	size, ok := r.number()
	if !ok || shared > int64(len(r.path)) || size >= int64(len(r.rest)) {
		r.rest = nil
		return false
	}
	r.path = append(r.path[:shared], r.rest[:size]...)
	flags := r.rest[size]
	r.rest = r.rest[size+1:]
	r.kinds = PathKinds{}
	for i, n := range r.kinds.counts() {
		if flags&(1<<i) == 0 {
			continue
		}
		if *n, ok = r.number(); !ok {
			return false
		}
	}
	return true
}
