package selection

import (
	"bytes"
	"slices"
)

// Limits of memberNames.
const (
	// maxNames is the number of names stored per selection set, maxLearned how often a name is stored: it stops for objects that
	// have nothing in common.
	maxNames   = 256
	maxLearned = 1024
)

// memberNames are the member names of the last objects of a selection set, in order. Documents of an index are similar: comparing
// the next name with the expected one is cheaper than scanning it and looking it up. A memberNames is immutable.
type memberNames struct {
	// encoded are the names as in JSON, with quotes and colon; keyIndices are their indices among the keys, -1 for none.
	encoded    [][]byte
	keyIndices []int
}

// at returns the key index of the nth name and the offset of its value if doc[i] starts with that name; otherwise a value of 0.
func (n *memberNames) at(nth int, doc []byte, i int) (slot, value int) {
	if n == nil || nth >= len(n.encoded) || !bytes.HasPrefix(doc[i:], n.encoded[nth]) {
		return -1, 0
	}
	return n.keyIndices[nth], i + len(n.encoded[nth])
}

// learn stores the nth name of an object. Concurrent updates may be lost.
func (s *Set) learn(nth int, written []byte, slot int) {
	known := s.names.Load()
	if known == nil {
		known = &memberNames{}
	}
	if nth > len(known.encoded) || nth >= maxNames || s.learned.Add(1) > maxLearned {
		return
	}
	now := &memberNames{encoded: slices.Clone(known.encoded), keyIndices: slices.Clone(known.keyIndices)}
	if nth == len(now.encoded) {
		now.encoded, now.keyIndices = append(now.encoded, nil), append(now.keyIndices, 0)
	}
	now.encoded[nth], now.keyIndices[nth] = bytes.Clone(written), slot
	s.names.Store(now)
}

// UsualSize estimates the size of a written document, biased to the recent larger ones.
func (s *Set) UsualSize() int { return int(s.usual.Load()) }

// LearnSize updates the estimate after a document. Concurrent updates may be lost.
func (s *Set) LearnSize(usual, size int) {
	if now := max(size, usual-usual/8); now != usual {
		s.usual.Store(int64(now))
	}
}
