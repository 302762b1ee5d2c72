//! FINCH clustering (Sarfraz, Sharma and Stiefelhagen, CVPR 2019): vectors linked to their nearest neighbours by cosine similarity, without
//! a given number of clusters.

/// Clusters of unit vectors, by their indices: FINCH's second partition, or its first where that has fewer than three clusters.
pub fn clusters(vectors: &[Vec<f32>]) -> Vec<Vec<usize>> {
    let first = partition(vectors);
    if first.len() < 3 {
        return first;
    }
    let means: Vec<Vec<f32>> = first.iter().map(|cluster| mean(vectors, cluster)).collect();
    let merged = partition(&means).into_iter();
    let merged = merged.map(|group| group.into_iter().flat_map(|one| first[one].clone()).collect());
    merged.collect()
}

/// The member of a cluster nearest to its mean, the first of several.
pub fn representative(vectors: &[Vec<f32>], cluster: &[usize]) -> Option<usize> {
    let mean = mean(vectors, cluster);
    let alike = cluster.iter().map(|member| (*member, cosine(&vectors[*member], &mean)));
    first_greatest(alike)
}

/// The connected components of the links from every vector to its nearest neighbour.
fn partition(vectors: &[Vec<f32>]) -> Vec<Vec<usize>> {
    let mut labels: Vec<usize> = (0..vectors.len()).collect();
    for one in 0..vectors.len() {
        let others = (0..vectors.len()).filter(|other| *other != one);
        let alike = others.map(|other| (other, cosine(&vectors[one], &vectors[other])));
        if let Some(neighbour) = first_greatest(alike) {
            let (kept, gone) =
                (labels[one].min(labels[neighbour]), labels[one].max(labels[neighbour]));
            labels.iter_mut().filter(|label| **label == gone).for_each(|label| *label = kept);
        }
    }
    let roots = (0..vectors.len()).filter(|one| labels[*one] == *one);
    let members = |root: usize| (0..vectors.len()).filter(|one| labels[*one] == root).collect();
    roots.map(members).collect()
}

/// The index with the greatest score, the first of several.
pub fn first_greatest(scored: impl IntoIterator<Item = (usize, f64)>) -> Option<usize> {
    let greatest = scored.into_iter().reduce(|best, one| if one.1 > best.1 { one } else { best });
    greatest.map(|(index, _)| index)
}

fn mean(vectors: &[Vec<f32>], cluster: &[usize]) -> Vec<f32> {
    let width = vectors.first().map_or(0, Vec::len);
    let sum = |at: usize| cluster.iter().map(|member| f64::from(vectors[*member][at])).sum::<f64>();
    (0..width).map(|at| (sum(at) / cluster.len().max(1) as f64) as f32).collect()
}

/// The cosine similarity; 0 where a vector is all zeros.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { dot(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors at these angles, in degrees.
    fn at(angles: &[f32]) -> Vec<Vec<f32>> {
        angles.iter().map(|angle| angle.to_radians()).map(|a| vec![a.cos(), a.sin()]).collect()
    }

    #[test]
    fn first_neighbours_are_one_cluster_and_clusters_merge_once() {
        let vectors = at(&[0.0, 1.0, 10.0, 11.0, 90.0, 92.0, 100.0, 101.0]);
        assert_eq!(partition(&vectors), [vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7]]);
        assert_eq!(clusters(&vectors), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(clusters(&vectors[..1]), [vec![0]]);
        assert!(clusters(&[]).is_empty());
    }

    #[test]
    fn the_member_at_the_middle_stands_for_its_cluster() {
        let vectors = at(&[0.0, 4.0, 10.0]);
        assert_eq!(representative(&vectors, &[0, 1, 2]), Some(1));
        assert_eq!(representative(&vectors, &[]), None);
    }
}
