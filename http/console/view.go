package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/problem"
	"tutti/internal/core"
)

//go:embed pages/*.html
var pageFiles embed.FS

const contentTypeHTML = "text/html; charset=utf-8"

type clock func() time.Time

// views are the templates of the pages by name, each with the layout.
type views map[string]*template.Template

func parseViews() (views, error) {
	shared, err := template.New("").Funcs(functions()).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "reading the pages of the console", err)
	}
	names, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "reading the pages of the console", err)
	}
	all := views{}
	for _, file := range names {
		own, err := shared.Clone()
		if err == nil {
			own, err = own.ParseFS(pageFiles, file)
		}
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "reading the pages of the console", err)
		}
		all[strings.TrimSuffix(path.Base(file), ".html")] = own
	}
	return all, nil
}

// page is what the layout shows around the content of a page.
type page struct {
	Title string
	// Active is the entry of the navigation that is highlighted.
	Active  string
	Content any
	// The other members are set by render.
	Base, Version, RequestID, Notice string
	// Auth is set if authentication is on, System if the caller may do everything; Caller is the name of its token.
	Auth, System bool
	Caller       string
	Now          time.Time
}

// render writes a page with the layout.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Base, p.Version, p.RequestID, p.Auth, p.Now = s.base, s.version, api.RequestIDOf(r), s.auth, s.now()
	caller, _ := api.CallerOf(r.Context())
	_, restricted := api.RestrictedCaller(r)
	p.Caller, p.System = caller.Name, !restricted
	p.Notice = notices()[r.URL.Query().Get("notice")]
	var b bytes.Buffer
	if err := s.views[name].ExecuteTemplate(&b, "layout", p); err != nil {
		api.NoteError(r, fmt.Errorf("rendering the page %s: %w", name, err))
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("This page cannot be shown because of an internal error. The log has the details under request id " + p.RequestID + ".\n"))
		return
	}
	api.WriteWhole(w, status, contentTypeHTML, b.Bytes())
}

// fragment renders a part of a page.
func (s *site) fragment(name, part string, content any) ([]byte, error) {
	var b bytes.Buffer
	if err := s.views[name].ExecuteTemplate(&b, part, content); err != nil {
		return nil, core.WrapError(core.CodeInternal, "an internal error occurred", err)
	}
	return b.Bytes(), nil
}

// notices are the sentences that say what an action did, by the name that its redirect carries.
func notices() map[string]string {
	return map[string]string{
		"signed-out":   "You are signed out.",
		"cancelled":    "The job is cancelled. What it has written stays.",
		"queued":       "The run is queued.",
		"retried":      "The record is fetched again. The dead letter disappears when it succeeds.",
		"retried-all":  "The retry of the dead letters is queued. Each disappears when its record succeeds.",
		"discarded":    "The dead letter is discarded.",
		"record":       "The record is queued: it is fetched and written within seconds.",
		"published":    "The analysis is published.",
		"unpublished":  "The analysis is unpublished.",
		"suppressed":   "The analysis is suppressed. Its documents are removed from the index.",
		"registered":   "The version is registered.",
		"submitted":    "The analysis is submitted. It is in the index once it is published.",
		"study-added":  "The study is created.",
		"nothing-done": "There was nothing to do.",
	}
}

// errorView is the content of an error page.
type errorView struct {
	problem.Problem
	Base string
	// SignIn is set if a token may help; Next is the page to show after signing in.
	SignIn bool
	Next   string
	// Retry is the path to try again, empty for none.
	Retry string
	// Kept is set after an action: the browser still has what was entered, on the page before.
	Kept bool
	// What says in one sentence what happened.
	What string
}

func newErrorView(s *site, r *http.Request, p problem.Problem) errorView {
	v := errorView{Problem: p, Base: s.base, Next: s.nextPath(r.URL.RequestURI())}
	reading := r.Method == http.MethodGet
	switch p.Status {
	case http.StatusUnauthorized:
		v.What, v.SignIn = "This page needs a token, or the one that you signed in with is no longer valid.", true
	case http.StatusForbidden:
		v.What = "Your token may not do this."
	case http.StatusNotFound:
		v.What = "This does not exist, or no longer."
	case http.StatusConflict:
		v.What = "The state of this changed in the meantime, or does not permit it."
	case http.StatusRequestEntityTooLarge:
		v.What = "What you sent is larger than this server accepts."
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusTooManyRequests, http.StatusGatewayTimeout:
		v.What = "A part of the server does not answer right now. Nothing was lost."
	case http.StatusInternalServerError:
		v.What = "Something went wrong inside the server. The log has the details under the request id."
	default:
		v.What = "The request cannot be served as it is."
	}
	if reading && p.Status >= http.StatusInternalServerError {
		v.Retry = r.URL.RequestURI()
	}
	if !reading {
		v.Next = s.base + "/"
		if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
			v.Next = s.nextPath(from.RequestURI()) // the page with the form
		}
		v.Kept = true
	}
	return v
}

// functions are those of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"seg": url.PathEscape, "number": number, "bytes": byteSize, "span": span, "since": func(now, at time.Time) string { return span(now.Sub(at)) },
		"seconds": func(n int64) string { return span(time.Duration(n) * time.Second) },
		"stamp":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"tone":    tone, "words": words, "short": short, "join": strings.Join, "dict": dict, "add": func(a, b int) int { return a + b },
	}
}

// dict returns a map of names and values, for templates with several arguments.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			m[name] = pairs[i+1]
		}
	}
	return m
}

// number formats a number with thin spaces between thousands.
func number(n any) string {
	if p, ok := n.(*int64); ok && p != nil {
		n = *p
	}
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	digits, fraction, _ := strings.Cut(digits, ".")
	if strings.ContainsAny(digits, "eE") {
		return sign + digits
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return sign + b.String()
}

func byteSize(n int) string {
	size, unit := float64(n), 0
	units := []string{"B", "KiB", "MiB", "GiB"}
	for size >= 1024 && unit < len(units)-1 {
		size /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// span formats a duration with its largest two units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// tone returns the colour class of a state.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "ok", "succeeded", "up", "available", "present", "found", "equal", "PUBLISHED", "healthy", "none":
		return "good"
	case "paused", "failing", "failed", "down", "error", "rejected", "too_large", "tooLarge", "unhealthy", "crash_loop", "upstream_error", "deadLettered":
		return "bad"
	case "running", "queued", "pending":
		return "busy"
	case "attention", "partial", "neverIndexed", "degraded", "differs", "absent", "excluded", "otherOrganization", "invalid_id", "unknown",
		"unknown_repository", "not_understood":
		return "warn"
	default:
		return "plain"
	}
}

// words returns a state in words.
func words(state any) string {
	text := fmt.Sprint(state)
	if w, ok := map[string]string{
		"ok": "Healthy", "neverIndexed": "Never indexed", "attention": "Needs attention", "tooLarge": "Too large",
		"otherOrganization": "Other organization", "too_large": "Too large", "invalid_id": "Invalid id", "upstream_error": "Upstream error", "deadLettered": "Dead-lettered",
		"unknown_repository": "Unknown repository", "crash_loop": "Crash loop", "not_understood": "Not understood", "conflict": "Conflict",
		"rest": "Trigger", "PUBLISHED": "Published", "UNPUBLISHED": "Unpublished", "SUPPRESSED": "Suppressed",
	}[text]; ok {
		return w
	}
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// short returns the start of an id that is still recognizable.
func short(id string) string {
	if len(id) <= 13 {
		return id
	}
	return "…" + id[len(id)-12:]
}
