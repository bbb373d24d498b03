/**
 * Who has a session id at the moment, as one text: a replica, and which of all the episodes that ever had this id. An id
 * may be used again once its session is over, and nothing of the one may then be taken for the other's.
 */
export const holderOf = (replica: string, episodeId: string): string => `${replica} ${episodeId}`;

export const replicaOf = (holder: string): string => holder.split(' ', 1)[0] as string;

export const episodeIdOf = (holder: string): string => holder.slice(replicaOf(holder).length + 1);
