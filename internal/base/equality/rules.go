package equality

import (
	"bytes"
	"crypto/sha256"
	"strings"
)

// Rules say what makes no difference between two documents. It is safe for concurrent use; nil ignores no order.
type Rules struct{ root *node }

// node are the rules of one path of a document.
type node struct {
	unordered, below, all, without bool
	members                        map[string]*node
}

// New returns the Rules for documents in which the arrays of objects at the paths of unordered have no order: names of members, joined by
// dots. A path that ends in ".**" also stands for the arrays of objects at any depth below it; one that ends in ".*" likewise, but not for
// those below members named experiment and info, whose content is the submitter's. The members at the paths of without make no difference at all.
func New(unordered []string, without ...string) *Rules {
	r := &Rules{root: new(node)}
	for _, path := range unordered {
		path, all := strings.CutSuffix(path, ".**")
		path, below := strings.CutSuffix(path, ".*")
		n := r.at(path)
		n.unordered, n.below, n.all = true, below || all, all
	}
	for _, path := range without {
		r.at(path).without = true
	}
	return r
}

func (r *Rules) at(path string) *node {
	n := r.root
	for name := range strings.SplitSeq(path, ".") {
		if n.members == nil {
			n.members = make(map[string]*node)
		}
		if n.members[name] == nil {
			n.members[name] = new(node)
		}
		n = n.members[name]
	}
	return n
}

// belowUnordered and allUnordered are the rules of what is below a path that ends in ".*" and ".**".
var (
	belowUnordered = node{unordered: true, below: true}
	allUnordered   = node{unordered: true, below: true, all: true}
)

// member returns the rules of a member, nil for none.
func (n *node) member(name []byte) *node {
	switch {
	case n == nil:
		return nil
	case n.members[string(name)] != nil:
		return n.members[string(name)]
	case n.all:
		return &allUnordered
	case n.below && string(name) != "experiment" && string(name) != "info":
		return &belowUnordered
	default:
		return nil
	}
}

// Sum identifies the content of a document.
type Sum [16]byte

// Sum returns the same Sum for equal documents only.
func (r *Rules) Sum(document []byte) Sum {
	return sumOf(r.canonical(document, nil))
}

// Equal reports whether two documents are the same.
func (r *Rules) Equal(a, b []byte) bool {
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b)) || r.Sum(a) == r.Sum(b)
}

// EqualWhereStored reports whether a stored document is what is left of document without some of its fields: a mapping may exclude these
// from what is stored. A field is excluded from all elements of an array or from none.
func (r *Rules) EqualWhereStored(stored, document []byte) bool {
	return bytes.Equal(bytes.TrimSpace(stored), bytes.TrimSpace(document)) ||
		sumOf(r.canonical(stored, nil)) == sumOf(r.canonical(document, pathsOf(stored)))
}

func sumOf(canonical []byte) Sum {
	sum := sha256.Sum256(canonical)
	return Sum(sum[:])
}
