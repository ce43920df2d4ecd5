//! TLS of connections, with rustls.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use crate::database_url::{Settings, SslMode};

/// Makes TLS connections as the settings require.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Reads the certificates that the settings name.
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match settings.ssl_mode() {
            SslMode::Disable | SslMode::Prefer | SslMode::Require => {
                Arc::new(Verifier { known: None, is_host_checked: false, provider })
            }
            mode @ (SslMode::VerifyCa | SslMode::VerifyFull) => {
                let roots = Arc::new(roots(settings)?);
                let known = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
                let known = Some(known.map_err(|error| error.to_string())?);
                Arc::new(Verifier { known, is_host_checked: mode == SslMode::VerifyFull, provider })
            }
        };
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        let config = match (&settings.certificate, &settings.key) {
            (Some(certificate), Some(key)) => {
                let chain = CertificateDer::pem_file_iter(certificate)
                    .and_then(Iterator::collect)
                    .map_err(|error| format!("cannot read `sslcert` {}: {error}", certificate.display()))?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("cannot read `sslkey` {}: {error}", key.display()))?;
                config.with_client_auth_cert(chain, key).map_err(|error| format!("cannot use `sslcert`: {error}"))?
            }
            _ => config.with_no_client_auth(),
        };
        Ok(Self(Arc::new(config)))
    }
}

/// Returns the authorities whose certificates are accepted: those in a file, or those of the system.
fn roots(settings: &Settings) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match &settings.root_certificate {
        Some(path) => {
            let no = |error: &dyn std::fmt::Display| format!("cannot read `sslrootcert` {}: {error}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| no(&error))? {
                roots.add(certificate.map_err(|error| no(&error))?).map_err(|error| no(&error))?;
            }
            if roots.is_empty() {
                return Err(no(&"it contains no certificate"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                let remedy = "set `sslrootcert` to the certificate of the server's authority";
                return Err(format!("this machine has no list of certificate authorities; {remedy}"));
            }
        }
    }
    Ok(roots)
}

/// Checks the certificate of a server as far as its `sslmode` requires. That the server has the key of its certificate
/// is always checked.
#[derive(Debug)]
struct Verifier {
    /// Checks the authority; absent if any certificate is accepted.
    known: Option<Arc<WebPkiServerVerifier>>,
    is_host_checked: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(known) = &self.known else { return Ok(ServerCertVerified::assertion()) };
        match known.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // It is checked last, so everything else is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_host_checked => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = TlsStream<S>;
    type TlsConnect = Connect;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Self::Error> {
        // The library also asks for connections that will not be encrypted, such as those to a socket.
        let host = ServerName::try_from(host).ok().map(|host| host.to_owned());
        Ok(Connect { host, connector: TlsConnector::from(Arc::clone(&self.0)) })
    }
}

/// A TLS connection that will be made to one host.
pub(super) struct Connect {
    /// Absent if it is not the name of a host.
    host: Option<ServerName<'static>>,
    connector: TlsConnector,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connect {
    type Stream = TlsStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let host = self.host.ok_or_else(|| io::Error::other("the host has no valid name"))?;
            Ok(TlsStream(Box::new(self.connector.connect(host, stream).await?)))
        })
    }
}

/// An encrypted connection.
pub(super) struct TlsStream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for TlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
