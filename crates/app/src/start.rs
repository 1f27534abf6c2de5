//! Starting an installation: schema, secret key, signing keys and, at the very first start, an organization, its owner
//! and the owner's token.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use podium_api::enums::{OrganizationRole, Product, SessionKind, UserStatus};
use podium_api::workspaces::Workspace;
use podium_api::{CredentialId, OrganizationId, Timestamp, UserId, WorkspaceId, hex, unhex};
use podium_db::{Conn, Db, Options, Target, Tx};
use podium_domain::{Grant, Held, On, emails, names};
use podium_logs::LogStore;
use podium_objects::{Limits, LocalDisk, Uploads};
use podium_store::credentials::NewSession;
use podium_store::organizations::{self, OrganizationRow};
use podium_store::{Founder, Stamp, System, grants, settings, signing_keys, subjects, users, workspaces};

use crate::authority::Authorities;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::events::wakes::Wakes;
use crate::front_door::PublicUrl;
use crate::issued::Issued;
use crate::operations::OperationNotifier;
use crate::outside::Outside;
use crate::passwords::Passwords;
use crate::rate_limits::RateLimits;
use crate::secrets::Secrets;
use crate::shared_capacity::SharedCapacity;
use crate::signing::Keys;
use crate::streams::Streams;
use crate::system::{Rows, Vault};
use crate::webhooks::WebhookNotifier;
use crate::work::WorkNotifier;
use crate::world::World;
use crate::{App, Shared};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const KEY_CHECK: &str = "secret_key_check";
const FIRST_START: &str = "first_start";
/// How many uploads are received at once; further ones are refused and can be retried.
const MOST_UPLOADING: usize = 128;
/// How many times larger an archive may be once it is unpacked.
const MOST_EXPANSION: u64 = 4;

pub struct Started {
    pub app: App,
    /// The right to act for the system itself: for loops, maintenance and the operator.
    pub system: System,
    /// The owner's token, where this was the very first start.
    pub owner_token: Option<String>,
}

impl App {
    /// Opens an installation, and creates what is missing.
    pub fn start(
        target: Target,
        config: Config,
        secrets: Secrets,
        world: Arc<World>,
    ) -> Pin<Box<dyn Future<Output = Result<Started>> + Send>> {
        // Of an erased type, so that it is compiled in this crate and not again in every crate that starts an application.
        Box::pin(Self::open(target, config, secrets, world))
    }

    async fn open(target: Target, config: Config, secrets: Secrets, world: Arc<World>) -> Result<Started> {
        let public_url = PublicUrl::parse(&config.public_url)?;
        let authorities = Arc::new(Authorities::default());
        let mut options = Options::new(target);
        options.connections = config.connections.unwrap_or(options.connections);
        let work_notifier = WorkNotifier::default();
        let (operation_notifier, event_wakes) = (OperationNotifier::default(), Wakes::default());
        let (follower, notifier) = (Arc::clone(&authorities), work_notifier.clone());
        let (operations, wakes) = (operation_notifier.clone(), event_wakes.clone());
        let webhook_notifier = WebhookNotifier::default();
        let webhooks = webhook_notifier.clone();
        options.on_commit = Arc::new(move |changes| {
            follower.committed(changes);
            notifier.committed(changes);
            operations.committed(changes);
            wakes.committed(changes);
            webhooks.committed(changes);
        });
        #[expect(clippy::disallowed_methods, reason = "a server is the system")]
        let (db, system) = podium_store::open(options).await?;
        let founder = system.founder();
        podium_store::pictures::serve_at(&founder, &config.public_url);
        check_key(&db, founder, &secrets, &world).await?;
        let keys = make_keys(&db, founder, &secrets, &world).await?;
        let logs = match &config.logs {
            Some(directory) => LogStore::open(directory, config.log_retention)
                .map_err(|error| Error::Internal(format!("the log store cannot be opened: {error}")))?,
            None => LogStore::closed(),
        };
        let objects = open_objects(&config).await?;
        let app = Self(Arc::new(Shared {
            rows: Rows::new(db),
            system: Vault::new(system),
            outside: Outside::new(logs, objects),
            uploading: SharedCapacity::new(MOST_UPLOADING),
            file_lists: Default::default(),
            uploads_refused: Default::default(),
            secrets,
            keys: ArcSwap::from_pointee(keys),
            key_reload: Default::default(),
            calls: Default::default(),
            observer: Default::default(),
            log_streams: Streams::of_logs_and_operations(),
            webhook_notifier,
            event_wakes,
            event_streams: Streams::of_events(),
            authorities,
            work_notifier,
            operation_notifier,
            meters: Default::default(),
            listeners: Default::default(),
            node: Default::default(),
            disk: Default::default(),
            rate_limits: RateLimits::new(config.rates),
            running: Default::default(),
            refusals: Default::default(),
            landmarks: Default::default(),
            rendered_workspaces: Default::default(),
            rendered_deployments: Default::default(),
            passwords: Passwords::new(Arc::clone(&world)),
            sign_in_throttle: Default::default(),
            device_polls: Default::default(),
            operator_sessions: Default::default(),
            used_tokens: Mutex::default(),
            used_sessions: Mutex::default(),
            public_url,
            config,
            world,
        }));
        crate::maintenance::seal_urls(&app).await?;
        let owner_token = app.first_start().await?;
        Ok(Started { app, system, owner_token })
    }

    /// What to do where the keys of an installation are there and its database is not.
    pub fn lost_database(name: &str) -> String {
        format!(
            "{name} is missing or empty, although the data directory holds an installation: put it back, or restore a \
             backup to another directory (podium restore FILE --data-dir NEW), or start a new installation with another \
             --data-dir"
        )
    }

    /// Closes the database, once what was written is on disk.
    pub async fn close(&self) {
        db(self).close().await;
    }

    /// Whether the database answers, and there is room on the disk.
    pub async fn ready(&self) -> Result<()> {
        self.require_disk_space().await?;
        let system = system(self);
        db(self).read(None, move |conn| organizations::first(conn, &system)).await?;
        Ok(())
    }

    /// Makes a new signing key. Tokens signed by the old ones stay valid until they end.
    pub async fn rotate_signing_key(&self, system: &System) -> Result<String> {
        let now = self.world.now();
        let founder = system.founder();
        let key = Keys::generate(&self.world, &self.secrets, now);
        let id = key.id.clone();
        db(self)
            .write(None, move |tx| {
                signing_keys::insert(tx, &founder, &key)?;
                signing_keys::retire_others(tx, &founder, &key.id, now)
            })
            .await?;
        self.reload_keys().await?;
        Ok(id)
    }

    /// Makes another token that never expires for the oldest owner of the first organization. Only for operators:
    ///
    /// ```compile_fail,E0061
    /// async fn become_owner(app: &podium_app::App) {
    ///     let _ = app.new_owner_token().await;
    /// }
    /// ```
    pub async fn new_owner_token(&self, system: &System) -> Result<Option<String>> {
        Ok(self.new_owner_session(system, None).await?.map(|(_, (_, value))| value))
    }

    /// A session of the oldest owner of the first organization: its id and its value.
    pub(crate) async fn new_owner_session(
        &self,
        system: &System,
        expires_at: Option<Timestamp>,
    ) -> Result<Option<(OrganizationId, (CredentialId, String))>> {
        let system = *system;
        let owner = move |conn: &Conn| {
            let Some(organization_id) = organizations::first(conn, &system)? else { return Ok(None) };
            let owner = grants::oldest_owner(conn, &system.scope(organization_id))?;
            Ok::<_, Error>(owner.map(|owner_id| (organization_id, owner_id)))
        };
        let Some((organization_id, owner_id)) = db(self).read(None, owner).await? else { return Ok(None) };
        let mut token = self.issue_session(owner_id, expires_at, self.world.now());
        if expires_at.is_some() {
            token.token.origin.kind = SessionKind::Operator;
        }
        let issued = (token.token.id.into(), token.value.clone());
        db(self).write(None, move |tx| token.store(tx, &system)).await?;
        Ok(Some((organization_id, issued)))
    }

    async fn first_start(&self) -> Result<Option<String>> {
        let system = system(self);
        let seen = db(self).read(None, move |conn| settings::get(conn, &system, FIRST_START)).await?;
        if seen.is_some() {
            return Ok(None);
        }
        if self.config.is_known {
            return Err(Error::Internal(Self::lost_database("the database")));
        }
        let app = self.clone();
        let now = self.world.now();
        let ids =
            FirstIds { organization: self.world.id(), owner: self.world.id(), workspace: self.world.id() };
        let token = self.issue_session(ids.owner, None, now);
        let value = token.value.clone();
        let made = db(self).write(None, move |tx| app.make_first_organization(tx, ids, &token, now)).await?;
        Ok(made.then_some(value))
    }

    fn make_first_organization(
        &self,
        tx: &Tx,
        ids: FirstIds,
        token: &Issued<NewSession>,
        now: Timestamp,
    ) -> Result<bool> {
        let system = system(self);
        if !settings::add(tx, &system, FIRST_START, &now.to_string())? {
            return Ok(false);
        }
        let FirstIds { organization: organization_id, owner: owner_id, workspace: workspace_id } = ids;
        let email = emails::email("PODIUM_OWNER_EMAIL", &self.config.owner_email)?;
        let name = names::name("PODIUM_ORGANIZATION_NAME", &self.config.organization_name, 50)?;
        let scope = system.scope(organization_id);
        let profile = subjects::user_profile(owner_id, &email.address, "Owner");
        subjects::put(tx, &system, &profile)?;
        let stamp = Stamp::new(profile.clone(), now);
        let organization = new_organization(organization_id, name.text, &stamp);
        organizations::insert(tx, &system, &organization, &name.key)?;
        let owner = users::Account {
            id: owner_id,
            username: email.address,
            full_name: "Owner".into(),
            avatar_url: String::new(),
            password_hash: None,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        users::insert(tx, &system, &owner, &email.key)?;
        users::join(tx, &scope, owner.id, (&email.key, "owner"), UserStatus::Active, now)?;
        let grant = Grant { on: On::Organization, held: Held::Organization(OrganizationRole::Owner) };
        grants::insert(tx, &scope, grants::Subject::User, owner_id.into(), &grant)?;
        let workspace = new_workspace(workspace_id, organization_id, &stamp);
        workspaces::insert(tx, &scope, &workspace, "default", &stamp)?;
        token.store(tx, &system)?;
        Ok(true)
    }
}

/// The ids of what the first start makes.
#[derive(Clone, Copy)]
struct FirstIds {
    organization: OrganizationId,
    owner: UserId,
    workspace: WorkspaceId,
}

/// Opens the object store's directory.
async fn open_objects(config: &Config) -> Result<Uploads> {
    let (directory, bytes) = (config.files.clone(), config.upload_limit);
    let opened =
        tokio::task::spawn_blocking(move || LocalDisk::open(&directory).map_err(|error| (directory, error)));
    let disk =
        opened.await.map_err(|error| Error::Internal(error.to_string()))?.map_err(|(directory, error)| {
            Error::Internal(format!(
                "the directory {} cannot be used for files: {error}",
                directory.display()
            ))
        })?;
    let limits = Limits { bytes, unpacked: bytes.saturating_mul(MOST_EXPANSION), ..Limits::default() };
    Ok(Uploads::new(Arc::new(disk), limits))
}

/// Refuses to start under another key than the one that the secrets here were sealed with.
async fn check_key(db: &Db, founder: Founder, secrets: &Secrets, world: &World) -> Result<()> {
    let read = || db.read(None, move |conn| settings::get(conn, &founder, KEY_CHECK));
    let mut stored = read().await?;
    if stored.is_none() {
        let sealed = hex(&secrets.seal(world, KEY_CHECK, KEY_CHECK.as_bytes()));
        db.write(None, move |tx| settings::add(tx, &founder, KEY_CHECK, &sealed)).await?;
        stored = read().await?;
    }
    let opened =
        stored.and_then(|text| unhex(&text)).is_some_and(|bytes| secrets.open(KEY_CHECK, &bytes).is_ok());
    if opened {
        return Ok(());
    }
    let message = "the secret key is not the one this database was created with: set PODIUM_SECRET_KEY, or restore the key file";
    Err(Error::Internal(message.into()))
}

async fn make_keys(db: &Db, founder: Founder, secrets: &Secrets, world: &World) -> Result<Keys> {
    let mut rows = db.read(None, move |conn| signing_keys::all(conn, &founder)).await?;
    if rows.is_empty() {
        let key = Keys::generate(world, secrets, world.now());
        let make = move |tx: &Tx| {
            // The setting is the lock: of several replicas that start together, one makes the key.
            if settings::add(tx, &founder, "first_signing_key", &key.id)? {
                signing_keys::insert(tx, &founder, &key)?;
            }
            signing_keys::all(tx, &founder)
        };
        rows = db.write(None, make).await?;
    }
    Keys::load(&rows, secrets).map_err(|error| Error::Internal(error.to_string()))
}

fn new_organization(id: OrganizationId, name: String, stamp: &Stamp) -> OrganizationRow {
    OrganizationRow {
        id,
        name,
        billing_email: String::new(),
        product: Product::Hosted,
        has_allowed_ip_address_ranges: false,
        is_scim_enabled: false,
        should_enforce_dedicated_clusters: false,
        allow_enhanced_support_access: false,
        has_ai_features_disabled: false,
        stamp: stamp.clone(),
    }
}

fn new_workspace(id: WorkspaceId, organization_id: OrganizationId, stamp: &Stamp) -> Workspace {
    Workspace {
        id,
        name: "Default".into(),
        description: None,
        organization_id,
        organization_name: None,
        cicd_enforced_default: false,
        default_cluster_id: None,
        default_cloud_provider: None,
        default_region: None,
        created_at: stamp.created_at,
        created_by: None,
        updated_at: stamp.updated_at,
        updated_by: None,
    }
}
