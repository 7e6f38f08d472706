package node

import (
	"net"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/services/front-door/httpapi"
)

// openHTTP binds the HTTP interface, if there is to be one, and tells the roster.
func (n *node) openHTTP() (err error) {
	c := &n.config.HTTP
	if !c.Enabled {
		return nil
	}
	n.http, err = httpapi.New(n.httpConfig(), httpapi.Deps{Local: n.front.Local(), Logger: n.log.Named("http"), Registry: n.registry})
	if err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	if err := n.http.Listen(); err != nil {
		return err
	}
	n.front.AdvertiseHTTP(n.http.Addr().(*net.TCPAddr).Port)
	return nil
}

func (n *node) httpConfig() httpapi.Config {
	c := &n.config.HTTP
	config := httpapi.Config{
		Address: c.Address, MaxRequestSize: int(c.MaxRequestSize), MaxConnections: n.config.Limits.Connections, FrameGrace: n.config.Limits.FrameTimeout,
		CORS: httpapi.CORS{
			Enabled: c.CORS.Enabled, AllowedMethods: c.CORS.AllowedMethods, AllowedOrigins: c.CORS.AllowedOrigins, AllowedHeaders: c.CORS.AllowedHeaders,
			ExposedHeaders: c.CORS.ExposedHeaders, AllowCredentials: c.CORS.AllowCredentials, AllowPrivateNetwork: c.CORS.AllowPrivateNetwork,
		},
		JWT: httpapi.JWT{
			Algorithm: c.JWT.Algorithm, Issuer: c.JWT.Issuer, Audience: c.JWT.Audience, ValidIssuers: c.JWT.ValidIssuers, ValidAudiences: c.JWT.ValidAudiences,
			Expiry: c.JWT.AccessTokenExpiry, Skew: c.JWT.ClockSkew, NotBefore: c.JWT.NotBefore, EncodingSecret: c.JWT.EncodingSecret.Reveal(),
			DecodingSecret: c.JWT.DecodingSecret.Reveal(), Base64Secrets: c.JWT.UseBase64Secret,
		},
	}
	for _, t := range c.JWT.TrustedIssuers {
		config.JWT.TrustedIssuers = append(config.JWT.TrustedIssuers, httpapi.TrustedIssuer{Issuer: t.Issuer, Audience: t.Audience, KeysURL: t.JWKSURL, User: t.UserID})
	}
	if n.cluster != nil && n.cluster.secret != nil { // a token of one process serves at the others
		config.JWT.ClusterSecret = n.config.Cluster.Auth.SharedSecret.Reveal()
	}
	if c.Metrics.Enabled {
		config.Metrics = c.Metrics.Endpoint
	}
	if c.TLS.Enabled {
		config.CertFile, config.KeyFile = c.TLS.CertFile, c.TLS.KeyFile
	}
	return config
}

// reload takes over what SIGHUP may change: the certificate of the HTTP interface.
func (n *node) reload(*service.Config) {
	if n.http == nil {
		return
	}
	if err := n.http.Reload(); err != nil {
		n.log.Error("the certificate in force stays", "error", err)
	}
}
