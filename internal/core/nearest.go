package core

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxCompared is how much of a name is compared, in bytes: hardly a valid one is longer.
	maxCompared = 64
	// maxSteps is how much one search costs at most: a step is a byte of a name that was read, or two letters that were
	// compared. It is about ten milliseconds, and enough for a slip in one of 10,000 long names.
	maxSteps = 4 << 20
)

// Nearest returns the candidate with the smallest edit distance from given, whatever the case; the first of equals, "" without
// candidates. No more than 64 bytes of a name are compared, and no more of them all than takes about ten milliseconds: of very
// many long names only those that are near are found, and "" is given when there is none.
//
// The candidates are gone through again for each distance that is looked for, so the sequence must return the same each time.
func Nearest(given string, candidates iter.Seq[string]) string {
	s := newSearch(given)
	s.run(candidates)
	return s.best
}

// Suggest returns the nearest candidate where it is likely meant: half of it is the same, or one begins with the other. Else "", and
// also where given is a candidate itself: what is wrong with it is not how it is written. It costs what Nearest costs.
func Suggest(given string, candidates iter.Seq[string]) string {
	s := newSearch(given)
	s.run(candidates)
	a, b := strings.ToLower(normalize(given)), strings.ToLower(normalize(s.best))
	switch {
	case a == "" || b == "", s.best == given:
		return ""
	case strings.HasPrefix(a, b), strings.HasPrefix(b, a), 2*s.least <= max(utf8.RuneCountInString(a), utf8.RuneCountInString(b)):
		return s.best
	default:
		return ""
	}
}

// normalize returns what is compared of a name, apart from the case.
func normalize(name string) string {
	end := min(len(name), maxCompared)
	for end < len(name) && end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// search looks for the nearest of many names.
type search struct {
	// from is the name that was given, to the one that it is compared with.
	from, to []rune
	// row are the distances of what was read of from, from each beginning of to.
	row []int
	// steps are what the search may still cost.
	steps int
	// best is the nearest name yet, least how far it is, and what a name must be below to become it.
	best  string
	least int
}

func newSearch(given string) *search {
	s := &search{steps: maxSteps}
	s.from = s.read(nil, given)
	return s
}

// run looks for names nearby first and further on only when there are none: few letters need be compared to see that a name
// is not near, and so a near one is found among very many before the steps are used up.
func (s *search) run(candidates iter.Seq[string]) {
	for near := 1; ; near = 2*near + 1 {
		s.least = near + 1
		if s.within(candidates) || near >= maxCompared || s.steps <= 0 {
			return
		}
	}
}

// within reports whether there is a candidate below the least distance, and takes the first of the nearest.
func (s *search) within(candidates iter.Seq[string]) bool {
	found := false
	for c := range candidates {
		s.to = s.read(s.to[:0], c)
		if d, less := s.distance(); less {
			s.best, s.least, found = c, d, true
		}
		if s.least == 0 || s.steps <= 0 {
			break
		}
	}
	return found
}

// read appends what is compared of a name.
func (s *search) read(to []rune, name string) []rune {
	name = normalize(name)
	s.steps -= len(name) + 1
	for _, r := range name {
		to = append(to, unicode.ToLower(r))
	}
	return to
}

// distance is Levenshtein's: how many runes must be inserted, removed or changed. It is false when they are not less than
// the least, and then found out as early as can be: only places that are less than that apart need be compared, and when
// no beginning is less than that far, nothing is.
func (s *search) distance() (int, bool) {
	most := s.least - 1
	// Every rune more or less is one edit.
	if max(len(s.to)-len(s.from), len(s.from)-len(s.to)) > most {
		return 0, false
	}
	s.row = s.row[:0]
	for j := range len(s.to) + 1 {
		s.row = append(s.row, j)
	}
	for i, a := range s.from {
		// What is left of first and right of last is further than most, and what row has there says so: more than most at
		// first too, unless that is the beginning.
		first, last := max(0, i-most), min(len(s.to), i+1+most)
		diagonal := s.row[first]
		s.row[first] = i + 1
		nearest := i + 1
		for j := first; j < last; j++ {
			cost := diagonal
			if a != s.to[j] {
				cost++
			}
			diagonal = s.row[j+1]
			s.row[j+1] = min(cost, s.row[j]+1, s.row[j+1]+1)
			nearest = min(nearest, s.row[j+1])
		}
		s.steps -= last - first + 1
		if nearest > most {
			return 0, false
		}
	}
	d := s.row[len(s.to)]
	return d, d <= most
}
