-- Waiting for an estimate is a state of its own: before, such a job was held by nobody.
UPDATE standings SET standing = json_remove(
    json_set(standing, '$.state.state', 'estimating', '$.spec.hold', json('false'), '$.spec.awaits_estimate', json('true')), '$.state.resumes'
) WHERE iif(json_valid(standing), standing ->> '$.state.resumes', '') = 'queued'
    AND job IN (SELECT id FROM jobs WHERE phase = 'held' AND held_by IS NULL AND attempts = 0);
UPDATE jobs SET phase = 'estimating'
    WHERE phase = 'held' AND id IN (SELECT job FROM standings WHERE iif(json_valid(standing), standing ->> '$.state.state', '') = 'estimating');
