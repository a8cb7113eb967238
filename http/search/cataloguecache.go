package search

import (
	"sync"
	"sync/atomic"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

// generatedAtLayout formats a UTC time as ISO 8601 with milliseconds.
const generatedAtLayout = "2006-01-02T15:04:05.000Z"

// responseCache caches the encoded introspection responses: the summary of a set and the detail of a catalogue are encoded once,
// on the first request, and reused while the port returns the same pointers.
type responseCache struct {
	port     core.Catalogues
	basePath string
	// mu is held while the responses for a new set are prepared.
	mu    sync.Mutex
	known atomic.Pointer[responseSet]
}

// current returns the responses for the current set of catalogues.
func (a *responseCache) current() *responseSet {
	set := a.port.Catalogues()
	if known := a.known.Load(); known != nil && known.set == set {
		return known
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// Read again under mu: another request may have stored the responses of a newer set.
	set = a.port.Catalogues()
	known := a.known.Load()
	if known != nil && known.set == set {
		return known
	}
	next := newResponseSet(set, a.basePath, known)
	a.known.Store(next)
	return next
}

// responseSet holds the introspection responses of one set.
type responseSet struct {
	set     *core.CatalogueSet
	summary func() taggedBody
	details map[*core.Catalogue]func() *catalogueResponses
}

// taggedBody is a body with its entity tag.
type taggedBody struct {
	body []byte
	tag  string
}

func newTaggedBody(v any) taggedBody {
	body := rendered(v)
	return taggedBody{body: body, tag: api.WeakTag(body)}
}

// newResponseSet prepares the responses for a set; it reuses those of unchanged catalogues in previous.
func newResponseSet(set *core.CatalogueSet, basePath string, previous *responseSet) *responseSet {
	s := &responseSet{
		set: set, details: make(map[*core.Catalogue]func() *catalogueResponses, len(set.Catalogues)),
		summary: sync.OnceValue(func() taggedBody { return newTaggedBody(newSummaryBody(set, basePath)) }),
	}
	for _, c := range set.Catalogues {
		if previous != nil && previous.details[c] != nil {
			s.details[c] = previous.details[c]
			continue
		}
		s.details[c] = sync.OnceValue(func() *catalogueResponses { return newCatalogueResponses(c, basePath) })
	}
	return s
}

// responsesFor returns the responses for a catalogue of the set.
func (s *responseSet) responsesFor(c *core.Catalogue) *catalogueResponses { return s.details[c]() }

// catalogueResponses holds the responses for one catalogue.
type catalogueResponses struct {
	catalogue *core.Catalogue
	// problem is that of the catalogue, nil if the catalogue is available.
	problem *core.CatalogueProblem
	// failed is the body of GET /introspection/{id} for a failed catalogue, notFoundBody that of the 404 of its other paths.
	failed       taggedBody
	notFoundBody []byte
	// A detail is head, the time of generatedAt, and the meta and tail of a detailRest.
	head []byte
	// unfiltered is for callers that see all documents, filtered for those that an access rule restricts.
	unfiltered, filtered detailRest
}

// detailRest is the part of a detail that depends on the caller, with the entity tag of the whole detail.
type detailRest struct {
	catalogue *core.Catalogue
	meta, tag string
	tail      []byte
}

func newCatalogueResponses(c *core.Catalogue, basePath string) *catalogueResponses {
	a := &catalogueResponses{catalogue: c, problem: c.Problem}
	if c.Problem != nil {
		body := newFailedBody(c)
		a.failed = newTaggedBody(body)
		body.Details = basePath + introspectionPath(c)
		a.notFoundBody = rendered(body)
		return a
	}
	a.head = detailHeadOf(c)
	rest := func(c *core.Catalogue, meta string) detailRest {
		tail := detailTailOf(c, nil)
		return detailRest{catalogue: c, meta: meta, tail: tail, tag: api.WeakTag(a.head, []byte(meta), tail)}
	}
	a.unfiltered = rest(c, `","meta":{"authFiltered":false},`)
	a.filtered = rest(c.WithoutSamples(), `","meta":{"authFiltered":true},`)
	return a
}

func (a *catalogueResponses) detailFor(filtered bool) detailRest {
	if filtered {
		return a.filtered
	}
	return a.unfiltered
}

// headAt returns the start of the detail, up to tail, with generatedAt set to now and followed by middle.
func (a *catalogueResponses) headAt(now time.Time, middle string) []byte {
	b := make([]byte, 0, len(a.head)+len(generatedAtLayout)+len(middle))
	b = append(b, a.head...)
	b = now.UTC().AppendFormat(b, generatedAtLayout)
	return append(b, middle...)
}
