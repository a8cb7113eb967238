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

	"tutti/internal/tlsconfig"
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

// send posts a body to a target. The error, without the target's URL, is nil for a status 2xx, and a rejectedError for one that
// further attempts would not change.
func (s *sender) send(ctx context.Context, t Target, body []byte) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return Response{}, rejectedError{errors.New("the URL is invalid")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.userAgent)
	if t.Token != "" {
		request.Header.Set("Authorization", "Bearer "+t.Token)
	}
	if t.Secret != "" {
		request.Header.Set("X-Signature-256", s.sign(t.Secret, body))
	}
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
	judged := tlsconfig.Answer{Status: response.StatusCode, Credentials: s.files.Name("url") + ", token and secret", Address: s.files.Name("url")}
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
