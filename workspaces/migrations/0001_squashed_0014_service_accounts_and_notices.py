"""The tables of workspaces in a new database, as 0001 to 0014 make them one after the other.

An older installation goes on with those; one that has applied all of them only records this migration.

Left out is what a new database has no rows for: of 0011, the removal of mail addresses that several people
have.
"""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import workspaces.states
from django.conf import settings
from django.db import migrations, models
from workspaces.migration_operations.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('workspaces', '0001_initial'),
        ('workspaces', '0002_notifications'),
        ('workspaces', '0003_sign_in_invitations_and_token_scopes'),
        ('workspaces', '0004_browser_sessions'),
        ('workspaces', '0005_people_and_workspaces'),
        ('workspaces', '0006_audit_chain'),
        ('workspaces', '0007_secrets'),
        ('workspaces', '0008_token_scopes'),
        ('workspaces', '0009_device_logins'),
        ('workspaces', '0010_tokens_for_all_workspaces'),
        ('workspaces', '0011_mail_and_invitation_links'),
        ('workspaces', '0012_external_accounts'),
        ('workspaces', '0013_second_factors'),
        ('workspaces', '0014_service_accounts_and_notices'),
    ]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='User',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('password', models.CharField(max_length=128, verbose_name='password')),
                    ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                    ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                    ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                    ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                    ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                    ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                    ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                    ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                    ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                    ('is_operator', models.BooleanField(default=False, help_text='May manage clusters, nodes and people of this installation.')),
                    ('password_is_one_time', models.BooleanField(default=False, help_text='Set by an owner; to be replaced at the first sign-in.')),
                    ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                    ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                    ('display_name', models.CharField(blank=True, db_default='', default='', max_length=100)),
                    ('made_by', models.CharField(blank=True, db_default='', default='', max_length=150)),
                    ('service_workspace', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='service_accounts', to='workspaces.workspace')),
                ],
                options={
                    'verbose_name': 'user',
                    'verbose_name_plural': 'users',
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('email'), condition=models.Q(('email', ''), _negated=True), name='one_person_per_mail_address')],
                },
                managers=[
                    ('objects', django.contrib.auth.models.UserManager()),
                ],
            ),
            migrations.CreateModel(
                name='Membership',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('viewer', 'viewer'), ('contributor', 'contributor'), ('owner', 'owner')], default=workspaces.states.Role['VIEWER'], max_length=16)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='workspaces.workspace')),
                    ('is_from_groups', models.BooleanField(db_default=False, default=False)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'user'), name='one_role_per_person_and_workspace')],
                },
            ),
            migrations.CreateModel(
                name='Workspace',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('slug', models.SlugField(unique=True)),
                    ('name', models.CharField(max_length=100)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('last_run_number', models.PositiveIntegerField(default=0)),
                    ('people', models.ManyToManyField(related_name='workspaces', through='workspaces.Membership', to=settings.AUTH_USER_MODEL)),
                    ('archived_at', models.DateTimeField(blank=True, null=True)),
                ],
            ),
            migrations.CreateModel(
                name='AuditEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                    ('actor', models.CharField(max_length=150)),
                    ('verb', models.CharField(max_length=64)),
                    ('subject', models.CharField(max_length=200)),
                    ('detail', models.JSONField(default=dict)),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='audit_events', to='workspaces.workspace')),
                    ('position', models.BigIntegerField(editable=False, null=True, unique=True)),
                    ('seal', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ],
            ),
            migrations.CreateModel(
                name='ApiToken',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100)),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('hint', models.CharField(help_text='First characters, to recognise it.', max_length=12)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('last_used_at', models.DateTimeField(blank=True, null=True)),
                    ('revoked_at', models.DateTimeField(blank=True, null=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to='workspaces.workspace')),
                    ('scope', models.CharField(choices=[('read', 'read'), ('log', 'log runs'), ('register', 'log runs, register models'), ('submit', 'submit runs'), ('write', 'everything')], default=workspaces.states.TokenScope['WRITE'], max_length=8)),
                    ('expires_at', models.DateTimeField(blank=True, null=True)),
                    ('last_client', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ],
            ),
            migrations.CreateModel(
                name='Channel',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(max_length=16)),
                    ('name', models.CharField(max_length=100)),
                    ('target', models.CharField(max_length=1000)),
                    ('secret', models.CharField(blank=True, max_length=200)),
                    ('events', models.JSONField(default=list)),
                    ('ours_only', models.BooleanField(default=False)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('last_sent_at', models.DateTimeField(blank=True, null=True)),
                    ('failing_since', models.DateTimeField(blank=True, null=True)),
                    ('failures', models.PositiveIntegerField(default=0, help_text='In a row.')),
                    ('last_error', models.CharField(blank=True, max_length=300)),
                    ('try_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('busy_until', models.DateTimeField(blank=True, null=True)),
                    ('paused_at', models.DateTimeField(blank=True, null=True)),
                    ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='channels', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='channels', to='workspaces.workspace')),
                ],
                options={
                    'ordering': ['id'],
                },
            ),
            migrations.CreateModel(
                name='Delivery',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=100)),
                    ('event', models.CharField(max_length=32)),
                    ('body', models.JSONField()),
                    ('state', models.CharField(default='waiting', max_length=16)),
                    ('tries', models.PositiveIntegerField(default=0)),
                    ('last_error', models.CharField(blank=True, max_length=300)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('try_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('sent_at', models.DateTimeField(blank=True, null=True)),
                    ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='workspaces.channel')),
                ],
                options={
                    'ordering': ['id'],
                    'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['channel', 'try_at'], name='delivery_waiting')],
                    'constraints': [models.UniqueConstraint(fields=('channel', 'key'), name='told_once')],
                },
            ),
            migrations.CreateModel(
                name='SignInAttempts',
                fields=[
                    ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ('count', models.FloatField(default=0)),
                    ('last_at', models.FloatField(default=0)),
                    ('known_until', models.FloatField(default=0)),
                ],
            ),
            migrations.CreateModel(
                name='Invitation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('viewer', 'viewer'), ('contributor', 'contributor'), ('owner', 'owner')], max_length=16)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='workspaces.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'user'), name='one_invitation_per_person_and_workspace')],
                },
            ),
            migrations.CreateModel(
                name='BrowserSession',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('session_key', models.CharField(max_length=40, unique=True)),
                    ('browser', models.CharField(blank=True, max_length=100)),
                    ('address', models.CharField(blank=True, max_length=64)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('last_seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='browser_sessions', to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='PasswordLink',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('expires_at', models.DateTimeField()),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='password_links', to=settings.AUTH_USER_MODEL)),
                    ('is_by_mail', models.BooleanField(db_default=False, default=False)),
                ],
            ),
            migrations.CreateModel(
                name='AuditAnchor',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.BigIntegerField(default=0)),
                    ('seal', models.CharField(max_length=64)),
                ],
            ),
            migrations.CreateModel(
                name='Secret',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=64)),
                    ('sealed', models.BinaryField()),
                    ('version', models.PositiveIntegerField(default=1)),
                    ('is_masked', models.BooleanField(default=True)),
                    ('changed_by', models.CharField(max_length=150)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('changed_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='workspaces.workspace')),
                ],
                options={
                    'ordering': ['name'],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('user', None)), fields=('workspace', 'name'), name='one_secret_per_workspace'), models.UniqueConstraint(condition=models.Q(('user__isnull', False)), fields=('workspace', 'user', 'name'), name='one_secret_per_person')],
                },
            ),
            migrations.CreateModel(
                name='SecretUse',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(max_length=16)),
                    ('subject', models.CharField(max_length=100)),
                    ('node', models.CharField(blank=True, max_length=100)),
                    ('count', models.PositiveIntegerField(default=1)),
                    ('first_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('last_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('secret', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='workspaces.secret')),
                ],
                options={
                    'ordering': ['-last_at', '-pk'],
                    'constraints': [models.UniqueConstraint(fields=('secret', 'kind', 'subject', 'node'), name='one_row_per_use_of_a_secret')],
                },
            ),
            migrations.CreateModel(
                name='DeviceLogin',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('user_code', models.CharField(max_length=8, unique=True)),
                    ('name', models.CharField(max_length=100)),
                    ('scope', models.CharField(max_length=8)),
                    ('address', models.CharField(blank=True, max_length=64)),
                    ('state', models.CharField(default='pending', max_length=8)),
                    ('interval_s', models.PositiveIntegerField()),
                    ('polled_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('expires_at', models.DateTimeField(db_index=True)),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='InvitationLink',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('viewer', 'viewer'), ('contributor', 'contributor'), ('owner', 'owner')], max_length=16)),
                    ('address', models.EmailField(blank=True, max_length=254)),
                    ('digest', models.CharField(max_length=64, null=True, unique=True)),
                    ('maker', models.CharField(max_length=150)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('expires_at', models.DateTimeField()),
                    ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitation_links', to='workspaces.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='MailConfirmation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('address', models.EmailField(max_length=254)),
                    ('digest', models.CharField(max_length=64, null=True, unique=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('expires_at', models.DateTimeField()),
                    ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='mail_confirmation', to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='OutgoingMail',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('confirm', 'confirm'), ('changed', 'changed'), ('reset', 'reset'), ('invite', 'invite'), ('security', 'security')], max_length=16)),
                    ('recipient', models.CharField(max_length=254)),
                    ('state', models.CharField(default=workspaces.states.MailState['WAITING'], max_length=16)),
                    ('tries', models.PositiveIntegerField(default=0)),
                    ('last_error', models.CharField(blank=True, max_length=300)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('try_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('sent_at', models.DateTimeField(null=True)),
                    ('invitation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='mails', to='workspaces.invitationlink')),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='outgoing_mails', to=settings.AUTH_USER_MODEL)),
                    ('detail', models.CharField(blank=True, db_default='', default='', max_length=200)),
                    ('topic', models.CharField(blank=True, db_default='', default='', max_length=32)),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('state', workspaces.states.MailState['WAITING'])), fields=['try_at'], name='outgoing_mail_waiting')],
                },
            ),
            migrations.CreateModel(
                name='ExternalAccount',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('issuer', models.CharField(max_length=200)),
                    ('subject', models.CharField(max_length=255)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='external_accounts', to=settings.AUTH_USER_MODEL)),
                    ('disconnected_at', models.DateTimeField(null=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_person_per_external_account')],
                },
            ),
            migrations.CreateModel(
                name='Passkey',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100)),
                    ('credential_id', models.CharField(max_length=1400, unique=True)),
                    ('public_key', models.CharField(max_length=2000)),
                    ('sign_count', models.BigIntegerField(default=0)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('last_used_at', models.DateTimeField(null=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passkeys', to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='RecoveryCode',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=64)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='TotpDevice',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('sealed_secret', models.CharField(max_length=200)),
                    ('confirmed_at', models.DateTimeField(null=True)),
                    ('last_step', models.BigIntegerField(default=0)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='totp_device', to=settings.AUTH_USER_MODEL)),
                ],
            ),
        ]),
    ]
