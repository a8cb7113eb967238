package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/tlsconfig"
)

const (
	// sendTimeout bounds one attempt to send a message.
	sendTimeout = 10 * time.Second
	// maxResponseBytes is the part of a response that is read.
	maxResponseBytes = 4 << 10
	// maxRetryAfter bounds the Retry-After of a receiver.
	maxRetryAfter = time.Hour
)

// Response is what a receiver answered.
type Response struct {
	Status int
	// Body is the start of the response's body, as text.
	Body string
	// retryAfter is the time of the header Retry-After, 0 without one.
	retryAfter time.Duration
}

// rejectedError is the error of a message that the receiver will never take.
type rejectedError struct{ error }

// sender posts messages to receivers.
type sender struct {
	http      *http.Client
	files     tlsconfig.Files
	userAgent string
	sign      func(secret string, body []byte) string
}

// newSender returns the sender of a target; CodeInvalid for files of TLS that cannot be used.
func newSender(cfg Config, files tlsconfig.Files) (*sender, error) {
	client := cfg.HTTP
	if client == nil {
		secure, err := tlsconfig.New(files)
		if err != nil {
			return nil, err
		}
		client = &http.Client{Transport: secure.RoundTripper(&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: sendTimeout}).DialContext,
			ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
		})}
	}
	own := *client
	// A redirect would send the message and its credentials elsewhere.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender{http: &own, files: files, userAgent: cfg.UserAgent, sign: cfg.Sign}, nil
}

// errURL is the error of a target whose URL is none.
var errURL = errors.New("the URL is invalid")

// request returns a request to a target with its credentials.
func (s *sender) request(ctx context.Context, method string, t Target, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, t.URL, bytes.NewReader(body))
	if err != nil {
		return nil, rejectedError{errURL}
	}
	request.Header.Set("User-Agent", s.userAgent)
	if t.Token != "" {
		request.Header.Set("Authorization", "Bearer "+t.Token)
	}
	if t.Secret != "" {
		request.Header.Set("X-Signature-256", s.sign(t.Secret, body))
	}
	return request, nil
}

// send posts a body to a target. The error, without the target's URL, is nil for a status 2xx, and a rejectedError for one that
// further attempts would not change.
func (s *sender) send(ctx context.Context, t Target, body []byte) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	request, err := s.request(ctx, http.MethodPost, t, body)
	if err != nil {
		return Response{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return Response{}, fmt.Errorf("request timed out after %s", sendTimeout)
		}
		return Response{}, s.files.Explain(err) // without the URL
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	answer := Response{
		Status: response.StatusCode, Body: strings.ToValidUTF8(strings.TrimSpace(string(text)), "?"),
		retryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	judged := s.judge(response.StatusCode)
	s.files.Answered(judged, nil) // a message that is refused for its credentials is sent again
	switch status := response.StatusCode; {
	case status/100 == 2:
		return answer, nil // the receiver has the message, even if its answer was cut
	case status/100 == 3:
		return answer, fmt.Errorf("status %d: redirects are not followed; set the address that it redirects to%s", status, hostOf(response))
	case judged.AboutCredentials():
		reason, hint := judged.Refusal()
		return answer, fmt.Errorf("%s; %s: %s", reason, hint, truncated(answer.Body, maxExampleTextBytes))
	case status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooEarly && status != http.StatusTooManyRequests:
		return answer, rejectedError{statusError(status, answer.Body)}
	case err != nil:
		return answer, fmt.Errorf("status %d, and reading the response: %w", status, err)
	default:
		return answer, statusError(status, answer.Body)
	}
}

// judge returns what a status says about a receiver.
func (s *sender) judge(status int) tlsconfig.Answer {
	return tlsconfig.Answer{Status: status, Credentials: s.files.Name("url") + ", token and secret", Address: s.files.Name("url")}
}

// probe sends HEAD with the credentials and without a body: a safe method, which asks for no effect (RFC 9110, section 9.2.1). Slack's webhooks,
// Alertmanager and receivers that take only POST answer it with a status 4xx, so that only some statuses say something about messages.
func (s *sender) probe(ctx context.Context, t Target) (status int, reason, hint string) {
	request, err := s.request(ctx, http.MethodHead, t, nil)
	if err != nil {
		return 0, errURL.Error(), "check " + s.files.Name("url")
	}
	response, err := s.http.Do(request)
	if err != nil {
		reason, hint = s.files.Failure(err)
		return 0, "it cannot be reached: " + reason, hint
	}
	_ = response.Body.Close() // HEAD has none
	status = response.StatusCode
	switch judged := s.judge(status); {
	case judged.AboutCredentials():
		reason, hint = judged.Refusal()
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		reason, hint = fmt.Sprintf("it answers with status %d", status), "check the receiver, and a proxy in front of it"
	case status == http.StatusBadRequest && request.URL.Scheme == "http":
		reason, hint = "it answers with status 400, as a server of HTTPS does", "use https:// instead of http://, if intended"
	}
	return status, reason, hint
}

func statusError(status int, body string) error {
	return fmt.Errorf("status %d: %s", status, truncated(body, maxExampleTextBytes))
}

// hostOf returns ", on" and the host of a redirect: the rest of its URL may be secret.
func hostOf(r *http.Response) string {
	to, err := r.Location()
	if err != nil {
		return ""
	}
	return ", on " + to.Scheme + "://" + to.Host
}

func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<30))*time.Second, maxRetryAfter)
}
