package schemas

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

// Bounds of the external validations of one analysis.
const (
	// maxCalls is how many different URLs are asked.
	maxCalls = 1000
	// maxAtOnce is how many are asked side by side.
	maxAtOnce = 8
	// maxSilent is after how many URLs of a host without an answer the others of that host are not asked any more.
	maxSilent = 3
)

const keywordExternal = "externalValidations"

// external is one external validation, understood.
type external struct {
	template urlTemplate
	path     jsonPath
}

// parseExternals reads external validations; the pointers of the faults begin with the index of what is at fault.
func parseExternals(given []core.ExternalValidation) ([]external, *faults) {
	found := &faults{}
	all := make([]external, 0, len(given))
	for i, g := range given {
		template, err := parseTemplate(g.URL)
		if err != nil {
			found.add(core.Violation{Pointer: "/" + decimal(i) + "/url", Message: err.Error(), Keyword: keywordExternal})
		}
		path, err := parseJSONPath(g.JSONPath)
		if err != nil {
			found.add(core.Violation{Pointer: "/" + decimal(i) + "/jsonPath", Message: err.Error(), Keyword: keywordExternal})
		}
		all = append(all, external{template, path})
	}
	return all, found
}

func checkExternals(given []core.ExternalValidation) *faults {
	_, found := parseExternals(given)
	return found
}

// question is one URL with the places of the values that it asks about.
type question struct {
	url    string
	host   string
	shown  string
	places []string
	answer answer
}

// answer says why a value is not valid; an empty message says that it is.
type answer struct {
	message   string
	retryable bool
	silent    bool
}

// check asks about every value and adds what is not valid to found. An error says that ctx ended.
func (a *asker) check(ctx context.Context, found *faults, externals []external, study string, tree *value) error {
	questions := a.questions(found, externals, study, tree)
	if len(questions) > maxCalls {
		found.add(core.Violation{
			Pointer: questions[maxCalls].places[0], Keyword: keywordExternal,
			Message: "the analysis has more than " + counted(maxCalls, "value", "different values") + " that external services must be asked about",
		})
		return nil
	}
	silent := silence{hosts: map[string]int{}}
	budget, cancel := context.WithTimeout(ctx, a.cfg.TimeoutInAll)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(maxAtOnce)
	for _, q := range questions {
		group.Go(func() error {
			if silent.of(q.host) {
				q.answer = answer{message: "was not asked about: the service does not answer", retryable: true}
				return nil
			}
			q.answer = a.ask(budget, q)
			if q.answer.silent {
				silent.note(q.host)
			}
			return nil
		})
	}
	_ = group.Wait() // the calls give answers, no errors
	if ctx.Err() != nil {
		return givenUp(ctx.Err())
	}
	for _, q := range questions {
		for _, place := range q.places {
			if q.answer.message != "" {
				found.add(core.Violation{
					Pointer: place, Message: q.shown + " " + q.answer.message, Keyword: keywordExternal, Retryable: q.answer.retryable,
				})
			}
		}
	}
	return nil
}

// questions gives what there is to ask, each URL once, in the order of the values. What cannot be asked is added to
// found.
func (a *asker) questions(found *faults, externals []external, study string, tree *value) []*question {
	var all []*question
	known := map[string]*question{}
	for _, e := range externals {
		e.path.find(tree, func(l located) bool {
			text, scalar := scalarText(l.value)
			if l.value.kind == kindNull {
				return true
			}
			full, err := "", error(nil)
			message := "is " + l.value.kind.typeName() + ", which no external service can be asked about"
			if scalar {
				if full, err = e.template.fill(study, text); err != nil {
					message, scalar = err.Error(), false
				}
			}
			if !scalar {
				found.add(core.Violation{Pointer: l.pointer, Message: message, Keyword: keywordExternal})
				return !found.more
			}
			q := known[full]
			if q == nil {
				q = &question{url: full, host: e.template.origin, shown: quoted(text)}
				known[full] = q
				all = append(all, q)
			}
			if !slices.Contains(q.places, l.pointer) && len(q.places) < maxViolations {
				q.places = append(q.places, l.pointer)
			}
			return len(all) <= maxCalls
		})
		if len(all) > maxCalls {
			break
		}
	}
	return all
}

// scalarText gives the text of a scalar.
func scalarText(v *value) (string, bool) {
	switch v.kind {
	case kindString, kindNumber, kindBool:
		return strings.ToValidUTF8(v.text, "\uFFFD"), true
	default:
		return "", false
	}
}

// silence counts the URLs of each host that had no answer.
type silence struct {
	mu    sync.Mutex
	hosts map[string]int
}

func (s *silence) of(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[host] >= maxSilent
}

func (s *silence) note(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts[host]++
}
