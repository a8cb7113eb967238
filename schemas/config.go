package schemas

import (
	"log/slog"
	"time"

	"tutti/internal/core"
	"tutti/schemas/external"
)

// Defaults of Config.
const (
	// DefaultTimeout is how long an external service may take to answer unless Config says otherwise.
	DefaultTimeout = 5 * time.Second
	// DefaultTimeoutInAll is how long all external services may take about one analysis unless Config says otherwise.
	DefaultTimeoutInAll = time.Minute
	// DefaultValidationTime is how long validating one analysis may take unless Config says otherwise.
	DefaultValidationTime = 10 * time.Second
	// DefaultCacheBytes bounds the bodies that are kept unless Config says otherwise.
	DefaultCacheBytes = 64 << 20
	// DefaultUserAgent is what external services are told unless Config says otherwise.
	DefaultUserAgent = "tutti"
	// DefaultRetryWait is how long after a failure an external service is asked again unless Config says otherwise.
	DefaultRetryWait = 200 * time.Millisecond
)

// Config changes how a Service works. The zero value is the default of CONTRACT section 9.
type Config struct {
	// AllowOlder takes analyses of an older version of their type; by default only the latest is taken.
	AllowOlder bool
	// DefaultOptions are those of analysis types for which an option was never given. Default: none.
	DefaultOptions core.AnalysisOptions
	// AllowedHosts are the hosts that external validations may ask, each a name or an address, with a port or for every
	// port. Only these are asked, and these alone may be private or loopback ones. Default: every public address.
	AllowedHosts []string
	// Timeout bounds one call of an external service, from when its turn has come. Default DefaultTimeout.
	Timeout time.Duration
	// TimeoutInAll bounds all calls about one analysis together, the waits between them and for their turn included. What is
	// not known by then is a violation that may be right later. Default DefaultTimeoutInAll.
	TimeoutInAll time.Duration
	// ValidationTime bounds the validation of one analysis by its schema, without external services. A version of a type that
	// takes longer takes no further analyses until a later one is registered. Default DefaultValidationTime.
	ValidationTime time.Duration
	// RetryWait is how long after a first failure an external service is asked again, and twice that after a second; both
	// vary by half. Default DefaultRetryWait.
	RetryWait time.Duration
	// Shared says that other processes register analysis types in the same store: what is latest is then asked there, for
	// a validation always and for a body once a second. Default: this process is the only one.
	Shared bool
	// CacheBytes bounds the bodies that are kept, in bytes. Default DefaultCacheBytes.
	CacheBytes int64
	// UserAgent is what external services are told. Default DefaultUserAgent.
	UserAgent string
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics counts validations; nil counts nothing.
	Metrics *Metrics
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.TimeoutInAll == 0 {
		c.TimeoutInAll = DefaultTimeoutInAll
	}
	if c.ValidationTime == 0 {
		c.ValidationTime = DefaultValidationTime
	}
	if c.RetryWait == 0 {
		c.RetryWait = DefaultRetryWait
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	if c.Timeout < 0 || c.TimeoutInAll < 0 || c.ValidationTime < 0 || c.RetryWait < 0 || c.CacheBytes < 0 {
		return core.NewError(core.CodeInvalid, "the time-out, the wait and the cache of schemas must not be negative")
	}
	if f := external.CheckExternals(c.DefaultOptions.ExternalValidations); len(f.Violations) > 0 {
		return f.Invalid(errorIDParameter, "the default options of schemas are not valid")
	}
	return nil
}
