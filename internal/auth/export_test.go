package auth

// WithoutDowngrade is how the default client takes redirects.
var WithoutDowngrade = withoutDowngrade
