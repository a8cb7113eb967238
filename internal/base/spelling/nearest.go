package spelling

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxCompared is how much of a name is compared, in bytes: valid names are rarely longer.
	maxCompared = 64
	// maxSteps limits the cost of a search. A step is one byte of a name read, or one comparison of two letters. The limit is
	// about ten milliseconds, enough to find a typo in one of 10,000 long names.
	maxSteps = 4 << 20
)

// Nearest returns the candidate with the smallest edit distance from given, ignoring case; the first of equals, "" without
// candidates. It compares at most 64 bytes of a name, and stops after about ten milliseconds: among very many long names it finds
// only close ones, and returns "" if there is none.
//
// It iterates the candidates again for each distance, so the sequence must be the same each time.
func Nearest(given string, candidates iter.Seq[string]) string {
	s := newSearch(given)
	s.run(candidates)
	return s.best
}

// Suggest returns the nearest candidate if it is close enough: at least half of it is the same, or one is a prefix of the other.
// Otherwise it returns "", also if given is a candidate itself: then its spelling is not the problem. It costs as much as
// Nearest.
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

// normalize returns the part of a name that is compared, in lower case.
func normalize(name string) string {
	end := min(len(name), maxCompared)
	for end < len(name) && end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// search finds the nearest of many names.
type search struct {
	// from is the given name, to the name that it is compared with.
	from, to []rune
	// row holds the distances of the processed part of from to each prefix of to.
	row []int
	// steps is the remaining cost limit.
	steps int
	// best is the nearest name so far, least its distance; a better name must be below it.
	best  string
	least int
}

func newSearch(given string) *search {
	s := &search{steps: maxSteps}
	s.from = s.read(nil, given)
	return s
}

// run searches at small distances first: for those, few letters need comparing, so that a close name among very many is found
// before the steps are used up.
func (s *search) run(candidates iter.Seq[string]) {
	for near := 1; ; near = 2*near + 1 {
		s.least = near + 1
		if s.within(candidates) || near >= maxCompared || s.steps <= 0 {
			return
		}
	}
}

// within reports whether there is a candidate below the least distance, and stores the first of the nearest.
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

// read appends the normalized runes of a name.
func (s *search) read(to []rune, name string) []rune {
	name = normalize(name)
	s.steps -= len(name) + 1
	for _, r := range name {
		to = append(to, unicode.ToLower(r))
	}
	return to
}

// distance computes the Levenshtein distance. It returns false as early as possible if the distance is not below least: it
// compares only positions less than that apart, and stops when every prefix is at least that far.
func (s *search) distance() (int, bool) {
	most := s.least - 1
	// each additional rune is one edit
	if max(len(s.to)-len(s.from), len(s.from)-len(s.to)) > most {
		return 0, false
	}
	s.row = s.row[:0]
	for j := range len(s.to) + 1 {
		s.row = append(s.row, j)
	}
	for i, a := range s.from {
		// Values left of first and right of last are above most. row holds such values there: initially above most too, except
		// for the prefix.
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
