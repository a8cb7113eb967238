//go:build services

package console_test

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/tidwall/gjson"

	"tutti/internal/tools/demo"
)

//go:embed testdata/axe.min.js
var axe string

// browser is a page of a real Chromium on a running demo. It collects what the browser complains about.
type browser struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // chromedp's handle of the page
	base string

	mu         sync.Mutex
	complaints []string
}

// openBrowser starts the demo and a browser.
func openBrowser(t *testing.T) *browser {
	program := os.Getenv("TUTTI_TEST_CHROMIUM")
	if program == "" {
		t.Fatal("TUTTI_TEST_CHROMIUM is not set; deploy/local/chromium prints it")
	}
	b := &browser{t: t, base: startDemo(t)}
	profile := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(profile))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocated)
	ctx, end := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(func() {
		// A browser that is asked to close ends its other processes, which write to the profile, some of them a moment after itself.
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("the browser does not close: %v", err)
		}
		end()
		stop()
		for last := time.Now().Add(10 * time.Second); os.RemoveAll(profile) != nil && time.Now().Before(last); {
			time.Sleep(20 * time.Millisecond)
		}
	})
	b.ctx = ctx
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Error())
		case *cdplog.EventEntryAdded:
			// The status of a page is what a test asks for.
			if e.Entry.Level == cdplog.LevelError && !strings.Contains(e.Entry.Text, "the server responded with a status of") {
				b.complain(e.Entry.Text)
			}
		}
	})
	b.run(cdplog.Enable(), emulation.SetFocusEmulationEnabled(true))
	return b
}

// startDemo runs the demo until the test ends and returns its address.
func startDemo(t *testing.T) string {
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := demo.Run(ctx, demo.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Out: in, Logger: slog.New(slog.DiscardHandler)})
		ended <- errors.Join(err, in.Close())
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	address, base := regexp.MustCompile(`(http://\S+)/api-docs$`), ""
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Still running") {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			base = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if base == "" {
		t.Fatal("the demo did not print its address")
	}
	return base
}

func (b *browser) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, what)
}

// quiet fails the test if the browser complained, such as about the policy, since the last call.
func (b *browser) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("%s: the browser complains: %s", where, c)
	}
	b.complaints = nil
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		var body string
		_ = chromedp.Run(b.ctx, chromedp.Text("main", &body, chromedp.ByQuery))
		b.t.Fatalf("%v\n%s", err, body)
	}
}

// submit submits a form and waits for the page that answers: before it is loaded, nodes of the old page are found that are about to go.
func (b *browser) submit(selector string) {
	b.t.Helper()
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, chromedp.Submit(selector, chromedp.ByQuery))
		return err
	}))
}

// text returns the text of an element.
func (b *browser) text(selector string) string {
	b.t.Helper()
	var text string
	b.run(chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// present waits until an element is there, for half a minute.
func present(selector string) chromedp.Action {
	return chromedp.Poll("document.querySelector("+strconv.Quote(selector)+") !== null", nil, chromedp.WithPollingTimeout(30*time.Second))
}

// attribute returns an attribute of an element.
func (b *browser) attribute(selector, name string) string {
	b.t.Helper()
	var value string
	var there bool
	b.run(chromedp.AttributeValue(selector, name, &value, &there, chromedp.ByQuery))
	return value
}

// answer lets every further request of the browser be answered with a status, not by the server.
func (b *browser) answer(status int64) {
	b.t.Helper()
	chromedp.ListenTarget(b.ctx, func(event any) {
		if paused, is := event.(*fetch.EventRequestPaused); is {
			go func() { // the connection to the browser is read by the caller
				_ = chromedp.Run(b.ctx, fetch.FulfillRequest(paused.RequestID, status))
			}()
		}
	})
	b.run(fetch.Enable())
}

// number evaluates an expression to a number.
func (b *browser) number(expression string) float64 {
	b.t.Helper()
	var n float64
	b.run(chromedp.Evaluate(expression, &n))
	return n
}

// api reads a route of the API.
func (b *browser) api(path string) gjson.Result {
	b.t.Helper()
	resp, err := http.Get(b.base + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return gjson.ParseBytes(body)
}

// accessible fails the test if axe-core finds a serious violation on the page.
func (b *browser) accessible(where string) {
	b.t.Helper()
	var found string
	b.run(chromedp.Evaluate(axe, nil), chromedp.Evaluate(
		`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help, at: v.nodes.slice(0, 3).map((n) => n.html + " " + (n.any[0]?.message ?? ""))}))))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range gjson.Parse(found).Array() {
		if impact := v.Get("impact").String(); impact == "serious" || impact == "critical" {
			b.t.Errorf("%s: %s: %s: %s", where, impact, v.Get("help"), v.Get("at"))
		}
	}
}

// walked are the pages that exist on the demo, by a name for screenshots.
func (b *browser) walked() map[string]string {
	job := b.api("/jobs?limit=200").Get("jobs.@reverse.0.id").String()
	letter := b.api("/dead-letters").Get("deadLetters.0")
	record := "/console/records?repository=" + letter.Get("repository").String() + "&organization=" + letter.Get("organization").String() + "&id=" + letter.Get("recordId").String()
	study := b.api("/studies/all").Get("0").String()
	analysis := b.api("/studies/" + study + "/analysis?analysisStates=PUBLISHED,UNPUBLISHED").Get("0.analysisId").String()
	return map[string]string{
		"overview": "/", "jobs": "/console/jobs", "job": "/console/jobs/" + job, "dead-letters": "/console/dead-letters",
		"dead-letter": "/console/dead-letters/" + letter.Get("id").String(), "discard": "/console/dead-letters/" + letter.Get("id").String() + "/discard",
		"record": record, "record-search": "/console/records", "record-none": "/console/records?id=nothing",
		"suppress":   "/console/studies/" + study + "/analyses/" + analysis + "/suppress",
		"catalogues": "/console/catalogues", "catalogue": "/console/catalogues/analyses", "failed-catalogue": "/console/catalogues/expression",
		"explore": "/console/catalogues/analyses/explore", "document": "/console/catalogues/analyses/document?id=" + b.documentID(), "query": "/analyses/graphql", "schemas": "/console/schemas", "schema": "/console/schemas/variant_call",
		"register": "/console/schemas?from=variant_call",
		"studies":  "/console/studies", "study": "/console/studies/" + study, "missing": "/console/nothing",
		"sign-in": "/console/sign-in",
	}
}

// documentID returns the id of a document of the catalogue analyses.
func (b *browser) documentID() string {
	return b.api("/analyses/graphql?query=" + url.QueryEscape("{analysis{hits(first:1){edges{node{id}}}}}")).Get("data.analysis.hits.edges.0.node.id").String()
}

// TestBrowserPages opens every page at 360 and 1280 px, light and dark: none is wider than the window, axe-core finds no serious
// violation, and the browser has nothing to complain about. TUTTI_TEST_SCREENSHOTS names a folder for pictures of all.
func TestBrowserPages(t *testing.T) {
	b := openBrowser(t)
	folder := os.Getenv("TUTTI_TEST_SCREENSHOTS")
	for name, path := range b.walked() {
		for _, width := range []int64{360, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				where := fmt.Sprintf("%s-%d-%s", name, width, scheme)
				b.run(
					emulation.SetDeviceMetricsOverride(width, 900, 1, width < 600),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
					chromedp.Navigate(b.base+path), chromedp.WaitReady("main h1", chromedp.ByQuery),
				)
				b.run(chromedp.Evaluate(`document.querySelectorAll("main details").forEach((d) => { d.open = true })`, nil))
				if wide := b.number("document.documentElement.scrollWidth"); wide > float64(width) {
					t.Errorf("%s: the page is %v px wide", where, wide)
				}
				b.accessible(where)
				b.quiet(where)
				if folder != "" {
					var picture []byte
					b.run(chromedp.FullScreenshot(&picture, 100))
					if err := os.WriteFile(filepath.Join(folder, where+".png"), picture, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// TestBrowserActions does what people do: it indexes a repository and sees the bar move, retries a dead letter, filters by a facet, and
// fails a payload of a schema.
func TestBrowserActions(t *testing.T) {
	b := openBrowser(t)
	b.run(chromedp.Navigate(b.base+"/"), chromedp.WaitReady("#repositories", chromedp.ByQuery))
	b.submit(`form[action$="/repositories/demo.song/index"]`)
	b.run(chromedp.WaitReady("[data-state]", chromedp.ByQuery))
	// Every state that the page shows is noted, from the first one to the end of the stream.
	b.run(chromedp.Evaluate(`
		window.seen = [];
		const note = () => seen.push({state: document.querySelector("[data-state]").dataset.state, value: document.querySelector("#job-bar")?.value ?? 0});
		note();
		new MutationObserver(note).observe(document.querySelector("main"), {childList: true, subtree: true});
	`, nil), chromedp.Poll(`document.querySelector("[data-state=succeeded], [data-state=partial], [data-state=failed]") !== null`, nil, chromedp.WithPollingTimeout(time.Minute)))
	var seen []struct {
		State string
		Value float64
	}
	b.run(chromedp.Evaluate("seen", &seen))
	if last := seen[len(seen)-1]; len(seen) < 2 || last.Value <= seen[0].Value || last.State != "succeeded" && last.State != "partial" { // the index rejects a record of the demo
		encoded, _ := json.Marshal(seen)
		t.Errorf("the bar did not move: %s", encoded)
	}
	b.quiet("job")

	letters := len(b.api("/dead-letters").Get("deadLetters").Array())
	b.run(chromedp.Navigate(b.base+"/console/dead-letters"), chromedp.WaitReady("tbody tr", chromedp.ByQuery))
	if rows := b.number("document.querySelectorAll('tbody tr').length"); int(rows) != letters {
		t.Errorf("%v dead letters are shown of %d", rows, letters)
	}
	b.submit(`form[action$="/retry"].row-retry`)
	if said := b.text("[role=status]"); !strings.Contains(said, "The record is fetched again") {
		t.Errorf("after a retry: %s", said)
	}

	b.run(chromedp.Navigate(b.base+"/console/catalogues/analyses/explore"), chromedp.WaitReady("#v-0-0", chromedp.ByQuery))
	whole, drawn := b.text("#total"), b.number("document.querySelectorAll('.uplot').length")
	if drawn == 0 {
		t.Error("no histogram is drawn")
	}
	value := b.text("li:has(#v-0-0) .value")
	count := b.text("li:has(#v-0-0) .count")
	b.run(chromedp.Click("#v-0-0", chromedp.ByQuery), chromedp.WaitReady("#the-sqon", chromedp.ByQuery))
	if got := b.text("#total"); got == whole || !strings.HasPrefix(got, count+" documents") {
		t.Errorf("%s of %s documents: %s", value, count, got)
	}
	var address string
	b.run(chromedp.Location(&address))
	if sqon := b.number("JSON.parse(document.querySelector('#the-sqon').textContent).content.length"); sqon != 1 || !strings.Contains(address, "in.studyId=") {
		t.Errorf("%v clauses at %s", sqon, address)
	}
	b.quiet("explore")

	b.run(chromedp.Navigate(b.base+"/console/schemas/variant_call"), chromedp.WaitReady("textarea", chromedp.ByQuery),
		chromedp.SetValue("input[name=study]", "PANC-CA", chromedp.ByQuery),
		chromedp.SetValue("textarea", "{\n  \"studyId\": \"PANC-CA\",\n  \"analysisType\": {\"name\": \"variant_call\"},\n  \"files\": \"none\"\n}", chromedp.ByQuery))
	b.submit("textarea")
	b.run(chromedp.WaitReady("#result", chromedp.ByQuery))
	if line := b.text("li.wrong:has(.no) + li.note"); !strings.Contains(b.text(".lines"), "/files") || line == "" {
		t.Errorf("the violations are not shown: %s", b.text("main"))
	}
	b.accessible("violations")
	b.quiet("violations")
}

// TestBrowserUnreachable: a page that cannot refresh itself says so, and recovers by itself.
func TestBrowserUnreachable(t *testing.T) {
	b := openBrowser(t)
	b.run(chromedp.Navigate(b.base+"/"), chromedp.WaitReady("#live", chromedp.ByQuery))
	b.run(network.Enable(), network.EmulateNetworkConditions(true, 0, -1, -1))
	b.run(chromedp.WaitReady("#unreachable", chromedp.ByQuery))
	if said := b.text("#unreachable"); !strings.Contains(said, "cannot be reached") {
		t.Errorf("the page says %q", said)
	}
	b.accessible("unreachable")
	b.run(network.EmulateNetworkConditions(false, 0, -1, -1), chromedp.WaitNotPresent("#unreachable", chromedp.ByQuery))

	// The focus stays where it was while the page refreshes itself.
	b.run(chromedp.Focus(`form[action$="/demo.lyric/index"] button`, chromedp.ByQuery), chromedp.Evaluate(`document.querySelector("#live").dataset.old = "yes"`, nil),
		present("#live:not([data-old]) button:focus"))
	if action := b.attribute("form:has(button:focus)", "action"); !strings.HasSuffix(action, "/demo.lyric/index") {
		t.Errorf("the focus moved to %s", action)
	}

	// A token that is no longer valid leads to the page to sign in, and back.
	b.answer(http.StatusUnauthorized)
	b.run(present("#unreachable a"))
	if to := b.attribute("#unreachable a", "href"); to != "/console/sign-in?next=%2F" || !strings.Contains(b.text("#unreachable"), "no longer valid") {
		t.Errorf("the page says %q, and leads to %s", b.text("#unreachable"), to)
	}
}

// TestBrowserForms pastes only the id of a record, registers a version of an analysis type, and suppresses an analysis.
func TestBrowserForms(t *testing.T) {
	b := openBrowser(t)
	letter := b.api("/dead-letters").Get("deadLetters.0")
	b.run(chromedp.Navigate(b.base+"/console/records"), chromedp.SetValue("input[name=id]", letter.Get("recordId").String(), chromedp.ByQuery))
	b.submit("input[name=id]")
	if said := b.text("main"); !strings.Contains(said, "4 Dead letters") || !strings.Contains(said, "5 Index") {
		t.Errorf("the trace of a record that is found by its id: %s", said)
	}

	b.run(chromedp.Navigate(b.base+"/console/schemas/variant_call"), chromedp.Click("a[href$='#register']", chromedp.ByQuery),
		chromedp.WaitReady("textarea[name=registration]", chromedp.ByQuery), chromedp.Evaluate(`(() => {
			const field = document.querySelector("textarea[name=registration]");
			field.value = field.value.replace('"type": "object"', '"type": "nothing"');
		})()`, nil))
	b.submit("textarea[name=registration]")
	if line := b.text("li.wrong:has(.no) + li.note"); !strings.Contains(line, "/schema/type") {
		t.Errorf("the violations of a registration: %s", b.text("main"))
	}
	b.accessible("registration")
	b.run(chromedp.Evaluate(`(() => {
		const field = document.querySelector("textarea[name=registration]");
		field.value = field.value.replace('"nothing"', '"object"');
	})()`, nil))
	b.submit("textarea[name=registration]")
	if said := b.text("main"); !strings.Contains(said, "The version is registered") || !strings.Contains(said, "2 versions") {
		t.Errorf("after a registration: %s", said)
	}

	study := b.api("/studies/all").Get("0").String()
	b.run(chromedp.Navigate(b.base+"/console/studies/"+study), chromedp.Click("a[href$='/suppress']", chromedp.ByQuery), chromedp.WaitReady("button.danger", chromedp.ByQuery))
	b.submit("form[action$='/suppress']")
	if said := b.text("main"); !strings.Contains(said, "The analysis is suppressed") || !strings.Contains(said, "Suppressed") {
		t.Errorf("after suppressing: %s", said)
	}
	b.quiet("forms")
}

// TestBrowserExplore moves a slider by the keyboard, searches in the values of a facet that has more than a page of them, and does both
// without script.
func TestBrowserExplore(t *testing.T) {
	b := openBrowser(t)
	const page = "/console/catalogues/analyses/explore"
	b.run(chromedp.Navigate(b.base+page), present(".slider input"))
	whole := b.text("#total")
	b.run(chromedp.Focus(".slider input", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight),
		present("#the-sqon"), present(".slider input:focus"))
	if n := b.number("JSON.parse(document.querySelector('#the-sqon').textContent).content.filter((c) => c.op === 'gte').length"); n != 1 || b.text("#total") == whole {
		t.Errorf("after the slider moved: %s documents of %s, %s", b.text("#total"), whole, b.text("#the-sqon"))
	}
	if said := b.number("Number(document.querySelector('#said').textContent === document.querySelector('#total').textContent)"); said != 1 {
		t.Error("a screen reader does not learn how many documents match")
	}
	b.accessible("sliders")
	b.quiet("sliders")

	// A row opens its document, also on a phone, where each row is a card.
	b.run(emulation.SetDeviceMetricsOverride(390, 900, 1, true), chromedp.Navigate(b.base+page), present("#explore td a"))
	if wide := b.number("Math.max(...[...document.querySelectorAll('#explore td')].map((td) => td.getBoundingClientRect().right))"); wide > 390 {
		t.Errorf("the table is %v px wide on a phone", wide)
	}
	b.run(chromedp.Click("#explore td a", chromedp.ByQuery), chromedp.WaitReady(".tree", chromedp.ByQuery))
	if n := b.number("['.tree', '#the-document'].filter((at) => document.querySelector(at).textContent.includes(document.querySelector('h1').textContent)).length"); n != 2 {
		t.Errorf("the page of document %s has %s", b.text("h1"), b.text(".tree"))
	}
	b.run(emulation.ClearDeviceMetricsOverride(), chromedp.Navigate(b.base+page), present(".slider input"))

	// What is on the screen is found.
	b.run(chromedp.SendKeys("#quick", "wgs", chromedp.ByQuery), chromedp.Click("#filters button.primary", chromedp.ByQuery), present("#the-sqon"))
	if b.text("#total") == whole || strings.HasPrefix(b.text("#total"), "0 ") {
		t.Errorf("a search for wgs finds %s of %s", b.text("#total"), whole)
	}

	// A pasted list of ids says which were not found.
	b.run(chromedp.Navigate(b.base+page), present("#list"), fill("#list", b.documentID()+"\nnothing"), chromedp.Click("#filters button.primary", chromedp.ByQuery), present("#missing"))
	if missing := b.text("#missing"); missing != "nothing" || !strings.HasPrefix(b.text("#total"), "1 ") {
		t.Errorf("%q is missing, %s are found", missing, b.text("#total"))
	}

	// A filter that cannot be used is said, and the page keeps what it has.
	b.run(chromedp.SetValue("#sqon", "x", chromedp.ByQuery), chromedp.Click("#filters button.primary", chromedp.ByQuery), present("#unreachable"))
	if said := b.text("#unreachable"); !strings.Contains(said, "the additional SQON is not a JSON object") || strings.Contains(said, "by itself") || b.text("#total") == "" {
		t.Errorf("after a bad filter: %q", said)
	}

	large := "input[type=search][hx-get]"
	b.run(chromedp.Navigate(b.base+page), present(large))
	values := "[...document.querySelectorAll('#' + document.querySelector('" + large + "').getAttribute('aria-controls') + ' .value')].map((v) => v.textContent)"
	var shown []string
	b.run(chromedp.Evaluate(values, &shown))
	all := b.api("/analyses/graphql?query=" + url.QueryEscape("{analysis{aggregations{samples__donor__submitterDonorId{buckets(max:5000){key}}}}}")).
		Get("data.analysis.aggregations.samples__donor__submitterDonorId.buckets.#.key")
	missing := ""
	for _, key := range all.Array() {
		if !slices.Contains(shown, key.String()) {
			missing = key.String()
		}
	}
	b.run(chromedp.SendKeys(large, missing, chromedp.ByQuery), chromedp.Poll(values+".length === 1", nil, chromedp.WithPollingTimeout(30*time.Second)), chromedp.Evaluate(values, &shown))
	if len(shown) != 1 || shown[0] != missing || missing == "" {
		t.Errorf("%q is not among %q", missing, shown)
	}
	b.quiet("values")

	b.run(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(b.base+page), present(large))
	b.run(chromedp.SendKeys(large, missing, chromedp.ByQuery), chromedp.SendKeys("input[name^='from.'][type=number]", "1", chromedp.ByQuery))
	b.submit("#filters")
	if b.text("main ul li .value") != missing && !strings.Contains(b.text("#filters"), missing) || !strings.Contains(b.text("#the-sqon"), "gte") {
		t.Errorf("without script: %s", b.text("main"))
	}
}

// fill sets the value of a field, which chromedp.SetValue does not do for an empty one.
func fill(selector, value string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`{const field = document.querySelector(%q); field.value = %q; field.dispatchEvent(new Event("input", {bubbles: true}))}`, selector, value), nil)
}

// TestBrowserQuery writes GraphQL queries: the example finds documents, a broken one says where, the schema inserts fields, the history
// brings queries back, and Tab indents without holding the keyboard.
func TestBrowserQuery(t *testing.T) {
	b := openBrowser(t)
	b.run(chromedp.Navigate(b.base+"/console/catalogues/analyses"), chromedp.Click(`a[href$="/analyses/graphql"]`, chromedp.ByQuery), chromedp.WaitReady("#schema h3", chromedp.ByQuery))
	finished := func() string {
		b.t.Helper()
		b.run(chromedp.Poll(`document.querySelector("#state").textContent.startsWith("Finished")`, nil, chromedp.WithPollingTimeout(time.Minute)))
		return b.text("#state")
	}
	if b.number(`document.querySelector("#errors").offsetHeight + document.querySelector("#result").offsetHeight`) != 0 {
		t.Error("there are empty boxes before a result")
	}
	b.run(chromedp.Focus("#query", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(input.ModifierCtrl)))
	if said := finished(); !strings.HasPrefix(said, "Finished in ") {
		t.Errorf("the example: %s %s", said, b.text("#errors"))
	}
	if hits := b.number(`JSON.parse(document.querySelector("#result").textContent).data.analysis.hits.total`); hits < 1 {
		t.Errorf("the example finds %v documents", hits)
	}
	if command := b.text("details:has(#the-curl) summary"); command == "" || b.number(`document.querySelector("#the-curl").textContent.startsWith("curl "+location.origin+"/analyses/graphql") ? 1 : 0`) != 1 {
		t.Error("there is no curl command")
	}
	b.accessible("a result")

	b.run(fill("#query", "{\n  analysis { nothing }\n}"), chromedp.Click("#run", chromedp.ByQuery))
	b.run(chromedp.WaitVisible("#errors", chromedp.ByQuery))
	if said := finished(); !strings.HasPrefix(said, "Finished with errors") || !strings.Contains(b.text("#errors"), "line 2, column") || !strings.Contains(b.text("#errors"), "nothing") {
		t.Errorf("a broken query: %s %s", said, b.text("#errors"))
	}
	b.accessible("an error")

	b.run(fill("#variables", "["), chromedp.Click("#run", chromedp.ByQuery),
		chromedp.Poll(`document.querySelector("#errors").textContent.includes("The variables are not JSON")`, nil, chromedp.WithPollingTimeout(time.Minute)))

	// The schema leads from type to type, is searched, and inserts what is chosen.
	b.run(fill("#variables", ""), fill("#query", ""), chromedp.Focus("#query", chromedp.ByQuery), chromedp.KeyEvent("{ "),
		chromedp.Click(`button[aria-label="Insert the field analysis"]`, chromedp.ByQuery),
		chromedp.Click(`button[aria-label="Show the type analysis"]`, chromedp.ByQuery), chromedp.WaitReady(`button[aria-label="Insert the field hits"]`, chromedp.ByQuery),
		chromedp.Click(`button[aria-label="Insert the field hits"]`, chromedp.ByQuery), chromedp.KeyEvent("total"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(input.ModifierMeta)))
	finished()
	b.run(chromedp.SendKeys("#schema-search", "trackTotal", chromedp.ByQuery), chromedp.WaitReady(`#schema-path:empty`, chromedp.ByQuery))
	var inserted string
	if b.run(chromedp.Value("#query", &inserted, chromedp.ByQuery)); strings.Join(strings.Fields(inserted), " ") != "{ analysis { hits { total } }" {
		t.Errorf("the schema inserted %q", inserted)
	}

	// Tab indents, and leaves after Escape.
	b.run(fill("#query", ""), chromedp.Focus("#query", chromedp.ByQuery), chromedp.KeyEvent("{"), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("a"), chromedp.KeyEvent(kb.Tab))
	var indented string
	if b.run(chromedp.Value("#query", &indented, chromedp.ByQuery)); indented != "{\n  a  " {
		t.Errorf("the editor does not indent: %q", indented)
	}
	b.run(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Tab))
	if got := b.number(`document.activeElement.id === "variables" ? 1 : 0`); got != 1 {
		t.Error("the keyboard cannot leave the editor")
	}

	// The history survives a reload and brings a query back.
	b.run(chromedp.Reload(), chromedp.WaitReady("#schema h3", chromedp.ByQuery), chromedp.Click("#history summary", chromedp.ByQuery),
		chromedp.Click("#history-list li:last-child button", chromedp.ByQuery))
	if got := b.number(`document.querySelector("#query").value.startsWith("query ($filters: JSON)") ? 1 : 0`); got != 1 {
		t.Error("the history does not bring the first query back")
	}
	b.accessible("the history")
	for _, width := range []int64{390, 1280} {
		b.run(emulation.SetDeviceMetricsOverride(width, 900, 1, width < 600))
		if wide := b.number(`document.documentElement.scrollWidth`); wide > float64(width) {
			t.Errorf("with its history the page is %v px wide of %d", wide, width)
		}
		if beyond := b.number(`document.querySelector("#history-list button").getBoundingClientRect().right - document.querySelector("#history").getBoundingClientRect().right`); beyond > 0 {
			t.Errorf("at %d px the history flows %v px out of its card", width, beyond)
		}
	}
	b.run(chromedp.Click("#history-clear", chromedp.ByQuery))
	if left := b.number(`document.querySelectorAll("#history-list li").length + localStorage.length`); left > 1 {
		t.Errorf("%v queries are left", left)
	}
	b.quiet("query")
}
