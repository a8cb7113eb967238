package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tutti/internal/app/settings"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/upstream"
	"tutti/internal/upstream/protocol"
	"tutti/schemas"
)

func repositoryProbe(r config.Repository, key string, opts Options, look inspectStore) probe {
	subject, host := "repository "+r.Code, hostOf(r.URL)
	if r.Type == core.TypeLocal {
		return func(context.Context) []Finding { return builtIn(subject, r, look) }
	}
	return func(ctx context.Context) []Finding {
		kind := protocol.Of(r.Type)
		cfg := r.Client(key)
		cfg.Timeout, cfg.UserAgent = min(opts.Timeout, cfg.Timeout), "tutti/"+opts.Version
		from, err := kind.Open(cfg, r.Own())
		if err != nil {
			return []Finding{{subject, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		defer from.Close()
		begin := time.Now()
		organizations, err := from.Organizations(ctx)
		if err != nil {
			return []Finding{repositoryFailure(subject, host, key, r, err)}
		}
		f := Finding{Subject: subject, Status: StatusOK}
		f.Message = host + " lists " + count(len(organizations), kind.Organization, kind.Organizations) + " in " + time.Since(begin).Round(time.Millisecond).String()
		if len(organizations) == 0 {
			f.Status, f.Message = StatusWarn, host+" lists no "+kind.Organizations
			f.Hint = "nothing is indexed until there is one; check that url is that of the right repository"
		}
		found := append([]Finding{f}, unlisted(subject, r, kind, organizations)...)
		if source, ok := from.(upstream.Declarer); ok {
			found = append(found, declaredFindings(ctx, subject, host, key, r, source)...)
		}
		return found
	}
}

// unlisted returns a finding for excluded organizations that the repository does not list: their names may be misspelt.
func unlisted(subject string, r config.Repository, kind upstream.Type, listed []string) []Finding {
	missing := slices.DeleteFunc(slices.Clone(r.Exclusions()[upstream.ExcludeOrganizations]), func(o string) bool { return slices.Contains(listed, o) })
	if len(missing) == 0 || len(listed) == 0 {
		return nil
	}
	return []Finding{{
		subject, StatusWarn, "does not list " + count(len(missing), "excluded "+kind.Organization, "excluded "+kind.Organizations) + ", such as " + missing[0],
		"compare exclude.organizations with the repository; ids are case-sensitive",
	}}
}

// builtIn returns the findings of the built-in repository: its state, stored analyses that the rules of today refuse, and analysis types
// that cannot be registered any more.
func builtIn(subject string, rc config.Repository, look inspectStore) []Finding {
	found := []Finding{{subject, StatusOK, builtInState(look), ""}}
	r, err := look()
	if err != nil {
		return found
	}
	a := r.Analyses
	if a.NotObjects > 0 {
		found = append(found, Finding{
			subject, StatusWarn, count(a.NotObjects, "stored analysis has", "stored analyses have") +
				" an experiment, or the info of a file, that is not an object, and cannot be indexed: " + namedOf(a.Named, a.NotObjects),
			"replace or patch them",
		})
	}
	if a.Cut {
		found = append(found, Finding{
			subject, StatusWarn, "in its time this check read only the first " + count(a.Read, "analysis", "analyses") + ": later ones may have such values too", "",
		})
	}
	for i, t := range a.Types {
		if i+1 < len(a.Types) && a.Types[i+1].Name == t.Name { // not the latest
			continue
		}
		if fault := schemas.Fault(t.Schema); fault != "" {
			found = append(found, Finding{
				subject, StatusWarn, fmt.Sprintf("version %d of the analysis type %q stays as it was registered, but could not be registered now: %s", t.Version, t.Name, fault),
				"register a corrected version",
			})
		}
	}
	return append(found, typeFindings(subject, settings.DocumentTypes(typesOf(r), rc))...)
}

// namedOf joins the names of some of n things.
func namedOf(names []string, n int) string {
	text := strings.Join(names, ", ")
	if more := n - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// builtInState describes the built-in repository. Problems of its store are findings of the store.
func builtInState(look inspectStore) string {
	switch r, err := look(); {
	case err != nil, r.Unreadable, r.Version > r.Newest:
		return "built in"
	case r.Studies == 0:
		return "built in, no studies yet"
	default:
		return "built in, with " + count(r.Studies, "study", "studies")
	}
}

// repositoryFailure returns the finding for an upstream that did not list its organizations.
func repositoryFailure(subject, host, key string, r config.Repository, err error) Finding {
	f := Finding{subject, StatusFail, host + ": " + core.MessageOf(err), core.HintOf(err)}
	if reason, hint := r.TLS.Files(key).TLSFailure(err); reason != "" {
		f.Message, f.Hint = host+" does not answer: "+reason, hint
		return f
	}
	if f.Hint != "" {
		return f
	}
	path := protocol.Of(r.Type).ListPath(r.Own())
	if status, ok := errors.AsType[*upstream.StatusError](err); ok {
		f.Hint = statusHint(status.Status, path)
		return f
	}
	if errors.Is(err, upstream.ErrFormat) || errors.Is(err, upstream.ErrTooLarge) {
		f.Hint = "check the repository's type, and that its url is that of the API and not of a web page: tutti requests " + path + " below it"
		return f
	}
	switch reason, hint := tlsconfig.Failure(err); {
	case hint == "", errors.Is(err, upstream.ErrTruncated):
		f.Message += ": " + reason
		f.Hint = "check the repository's log, and the log of a proxy in front of it"
	default:
		f.Message, f.Hint = host+" does not answer: "+reason, hint
	}
	return f
}

// statusHint returns a hint for an upstream that answered a request for path with an error status.
func statusHint(status int, path string) string {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "wait until the repository has started or is less busy"
	case status >= http.StatusInternalServerError:
		return "check the repository's log, and the log of a proxy in front of it"
	case status == http.StatusRequestTimeout:
		return "check the proxy in front of the repository, which timed out"
	default:
		return "check the repository's url and type: tutti requests " + path + " below the url"
	}
}
