package natsconn

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/tools/queuetest"
)

// TestDeniedEnds: a refusal is reported for two minutes after it, and those two minutes begin anew with each refusal.
func TestDeniedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conn{}
		deny := func(subject string) {
			c.denied.Store(&denial{fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, subject), time.Now()})
		}
		want := func(message string) {
			t.Helper()
			if err := c.Denied(); (err == nil) != (message == "") || err != nil && core.MessageOf(err) != message {
				t.Errorf("after %s: got %v, want %q", time.Now().Format(time.TimeOnly), err, message)
			}
		}
		want("")
		deny("tutti.dead.a")
		time.Sleep(2 * time.Minute)
		want(`the server does not let this user publish to "tutti.dead.a"`)
		deny("tutti.dead.b")
		time.Sleep(2 * time.Minute)
		want(`the server does not let this user publish to "tutti.dead.b"`)
		time.Sleep(time.Nanosecond)
		want("")
	})
}

// TestRefusedUser: each text with which a server refuses a user is recognized, as the library has it and as the server sends it.
func TestRefusedUser(t *testing.T) {
	for text, want := range map[string]bool{
		"nats: Authentication Expired": true, "nats: User Authentication Expired": true, "nats: Account Authentication Expired": true,
		"nats: User Authentication Revoked": true, "nats: maximum connections exceeded": false,
	} {
		if got := refused(errors.New(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !refused(fmt.Errorf("connecting: %w", nats.ErrAuthorization)) {
		t.Error("an authorization violation is not recognized")
	}
}

// TestFailuresAreLoggedOnce: why the connection is not restored is logged when it is new, not with each attempt, and kept for /ready.
func TestFailuresAreLoggedOnce(t *testing.T) {
	var log strings.Builder
	c := &Conn{Log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, err := range []error{nats.ErrAuthorization, nats.ErrAuthorization, nats.ErrSecureConnWanted, nats.ErrSecureConnWanted, nats.ErrAuthorization} {
		if !c.noteFailure(err) || !errors.Is(c.failed.Load().Err, err) {
			t.Errorf("%v is not noted", err)
		}
	}
	if c.noteFailure(nats.ErrTimeout) {
		t.Error("a timeout is a failure of security")
	}
	if lines := strings.Count(log.String(), "the queue is not connected"); lines != 3 {
		t.Errorf("%d lines, want 3:\n%s", lines, log.String())
	}
}

// TestRightsOfTheGuide: the guide grants the rights with which the suites run, in both of its statements, and the hint contains them.
func TestRightsOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../deploy/docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "```conf\n"+queuetest.Rights+"\n```") {
		t.Errorf("the guide does not have the statement\n%s", queuetest.Rights)
	}
	parsed, err := conf.Parse(queuetest.Rights)
	if err != nil {
		t.Fatal(err)
	}
	rights, _ := parsed["permissions"].(map[string]any)
	publishing, subscribing, _ := strings.Cut(hintRights, "subscribe permission")
	for option, verb := range map[string]string{"pub": "publish", "sub": "subscribe"} {
		var subjects, commanded []string
		list, _ := rights[verb].([]any)
		for _, subject := range list {
			subjects = append(subjects, fmt.Sprint(subject))
		}
		for _, of := range regexp.MustCompile(`--allow-`+option+` '([^']*)'`).FindAllStringSubmatch(string(guide), -1) {
			commanded = append(commanded, strings.Split(of[1], ",")...)
		}
		slices.Sort(subjects)
		slices.Sort(commanded)
		if len(subjects) == 0 || !slices.Equal(subjects, commanded) {
			t.Errorf("nsc grants to %s\n%q, want\n%q", verb, commanded, subjects)
		}
		hint := publishing
		if verb == "subscribe" {
			hint = subscribing
		}
		for _, subject := range subjects {
			if !slices.ContainsFunc(regexp.MustCompile(`[$_A-Za-z.]+\.>`).FindAllString(hint, -1), func(granted string) bool {
				return strings.HasPrefix(subject, strings.TrimSuffix(granted, ">"))
			}) {
				t.Errorf("the hint does not let the user %s to %s: %s", verb, subject, hint)
			}
		}
	}
}
