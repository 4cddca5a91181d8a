-- All lines of all tenants, with whose they are: for workers, who serve everybody.
select line.id, line.queue, line.labels, line.tenant_id, tenant.name as tenant, tenant.weight
from line join tenant on tenant.id = line.tenant_id
